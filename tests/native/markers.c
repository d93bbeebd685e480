// What an Android program would do.
#include <android/trace.h>

int main(void)
{
    if (!ATrace_isEnabled())
        return 2;
    ATrace_beginSection("native section");
    ATrace_setCounter("native counter", -12345678901);
    ATrace_beginAsyncSection("native job", 7);
    ATrace_endAsyncSection("native job", 7);
    ATrace_endSection();
    return 0;
}
