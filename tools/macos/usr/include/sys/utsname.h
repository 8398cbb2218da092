/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_UTSNAME_H
#define MICA_MACOS_SYS_UTSNAME_H
struct utsname {
    char sysname[256], nodename[256], release[256], version[256], machine[256];
};

int uname(struct utsname *out);

#endif
