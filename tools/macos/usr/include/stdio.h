/* See tools/macos/README.md. */
#ifndef MICA_MACOS_STDIO_H
#define MICA_MACOS_STDIO_H
#include <stdarg.h>
#include <sys/types.h>

typedef struct __sFILE FILE;
extern FILE *__stdinp, *__stdoutp, *__stderrp;
#define stdin __stdinp
#define stdout __stdoutp
#define stderr __stderrp

#define EOF (-1)
#define BUFSIZ 1024
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _IOLBF 1
#define _IONBF 2

int fclose(FILE *f);
int feof(FILE *f);
int ferror(FILE *f);
int fflush(FILE *f);
int fgetc(FILE *f);
char *fgets(char *to, int cap, FILE *f);
int fileno(FILE *f);
FILE *fopen(const char *path, const char *mode);
FILE *fdopen(int fd, const char *mode);
int fprintf(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fputc(int c, FILE *f);
int fputs(const char *text, FILE *f);
size_t fread(void *to, size_t size, size_t n, FILE *f);
int fseek(FILE *f, long at, int from);
int fseeko(FILE *f, off_t at, int from);
long ftell(FILE *f);
off_t ftello(FILE *f);
int fscanf(FILE *f, const char *format, ...) __attribute__((format(scanf, 2, 3)));
size_t fwrite(const void *from, size_t size, size_t n, FILE *f);
int getc(FILE *f);
int getchar(void);
ssize_t getline(char **line, size_t *cap, FILE *f);
FILE *open_memstream(char **text, size_t *length);
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int putc(int c, FILE *f);
int putchar(int c);
int puts(const char *text);
int remove(const char *path);
int rename(const char *from, const char *to);
void rewind(FILE *f);
int setvbuf(FILE *f, char *buffer, int mode, size_t nbytes);
int snprintf(char *to, size_t cap, const char *format, ...) __attribute__((format(printf, 3, 4)));
int sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));
FILE *tmpfile(void);
int vfprintf(FILE *f, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
int vsnprintf(char *to, size_t cap, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

#endif
