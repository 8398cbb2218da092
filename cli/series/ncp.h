/* The commands behind `mica ncp`. */
#ifndef MICA_CLI_NCP_H
#define MICA_CLI_NCP_H

int ncp_advise(int argc, char **argv);

#endif
