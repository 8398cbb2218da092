/* See tools/macos/README.md. */
#ifndef MICA_MACOS_CTYPE_H
#define MICA_MACOS_CTYPE_H
int isalnum(int c);
int isalpha(int c);
int isdigit(int c);
int isspace(int c);
int isupper(int c);
int isxdigit(int c);
int tolower(int c);
int toupper(int c);

#endif
