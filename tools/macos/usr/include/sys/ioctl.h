/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_IOCTL_H
#define MICA_MACOS_SYS_IOCTL_H
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#define TIOCGWINSZ 0x40087468UL

int ioctl(int fd, unsigned long request, ...);

#endif
