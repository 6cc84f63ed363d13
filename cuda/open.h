// Opens shared libraries at run time, and finds their functions.
#ifndef PLANC_OPEN_H
#define PLANC_OPEN_H

// planc_open opens a shared library permanently. On failure it returns NULL and sets *why to the reason,
// which the caller frees.
void *planc_open(const char *name, char **why);

// planc_path returns the file from which a symbol of an open library comes, or NULL if that is not known.
const char *planc_path(void *library, const char *symbol);

// planc_bind_* look up a library's functions. They return the name of the first needed one that is missing,
// or NULL.
const char *planc_bind_driver(void *library);

#endif
