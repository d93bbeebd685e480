#include "known.h"

int main(int argc, char** argv) { return wait(argc, argv); }
