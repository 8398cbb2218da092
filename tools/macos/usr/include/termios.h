#ifndef MACOS_TERMIOS_H
#define MACOS_TERMIOS_H

#define NCCS 20
#define TCSANOW 0

typedef unsigned long tcflag_t;
typedef unsigned char cc_t;
typedef unsigned long speed_t;

struct termios {
    tcflag_t c_iflag, c_oflag, c_cflag, c_lflag;
    cc_t c_cc[NCCS];
    speed_t c_ispeed, c_ospeed;
};

int tcgetattr(int fd, struct termios *mode);
int tcsetattr(int fd, int when, const struct termios *mode);

#endif
