// A function that a probe can be put at.
#include <stdio.h>

__attribute__((noinline, noclone)) int probed(int value, const char* text)
{
    return printf("%d %s\n", value, text);
}

int main(void)
{
    for (int value = 0; value < 3; ++value)
        probed(value - 1, "some text");
    return 0;
}
