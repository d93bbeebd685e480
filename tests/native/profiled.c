// A program that is always in the same place. Compilers may leave the innermost function without a frame:
// then its caller is not seen.
#include <time.h>

static volatile unsigned long sum;

__attribute__((noinline, noclone)) void innermost(int count)
{
    for (int number = 0; number < count; ++number)
        sum += number;
}

__attribute__((noinline, noclone)) void between(int count)
{
    for (int round = 0; round < 4; ++round) {
        innermost(count);
        ++sum;
    }
}

__attribute__((noinline, noclone)) void outer(void)
{
    between(20000);
    ++sum;
}

int main(void)
{
    struct timespec used;
    do {
        outer();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < 900000000);
    return 0;
}
