// The same in C++.
#include "alert.c"
