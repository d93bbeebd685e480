// A program that compiles a function while it runs, and writes its name down as other profilers have it: at
// once, or with the argument "late" only when it ends. Nothing of it is left on the disk.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// Counts down, in a frame of its own.
#if defined(__x86_64__)
static const uint8_t code[] = {
    0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0x00, 0x02, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3,
};
#elif defined(__aarch64__)
static const uint32_t code[] = {
    0xa9bf7bfd, 0x910003fd, 0x529fffe0, 0x71000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0,
};
#else
#error "no code for this architecture"
#endif

static volatile unsigned long rounds;

__attribute__((noinline, noclone)) void run(void (*compiled)(void))
{
    compiled();
    ++rounds;
}

int main(int argc, char **argv)
{
    int is_late = argc > 1 && strcmp(argv[1], "late") == 0;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    memcpy(memory, code, sizeof(code));
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof(code));
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0)
        return 1;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (map == NULL)
        return 1;
    fprintf(map, "%lx %zx compiled function\n", (unsigned long)memory, sizeof(code));
    if (!is_late)
        fflush(map);
    struct timespec used;
    do {
        run((void (*)(void))(uintptr_t)memory);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < 200000000);
    fclose(map);
    unlink(path);
    return 0;
}
