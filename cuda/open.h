// Opening of shared libraries at run time, and of the calls in them.
#ifndef PLANC_OPEN_H
#define PLANC_OPEN_H

// planc_open opens a shared library for good; NULL if it cannot, and *why then says why (to be freed).
void *planc_open(const char *name, char **why);

// planc_path is the file that a symbol of an open library came from; NULL if that is not known.
const char *planc_path(void *library, const char *symbol);

// planc_bind_* look the calls of a library up; they return the name of the first needed one that is not there, or NULL.
const char *planc_bind_driver(void *library);

#endif
