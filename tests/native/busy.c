// Does known things that the kernel reports: touches 100 pages of its own, asks 17 times for its parent, and
// has two threads contend for their memory. It prints where the pages are.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, PAGES = 100, ASKED = 17 };

static void* quarrel(void* unused)
{
    struct timespec now, end;
    // Of its own time: on a busy machine it does as much as on others.
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    end.tv_nsec += 200000000;
    do {
        char* page = mmap(0, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *page = 1;
        munmap(page, PAGE_BYTES);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - end.tv_sec) * 1000000000LL + now.tv_nsec - end.tv_nsec < 0);
    return unused;
}

int main(void)
{
    char* pages = mmap(0, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int page = 0; page < PAGES; ++page)
        pages[page * PAGE_BYTES] = 1;
    for (int asked = 0; asked < ASKED; ++asked)
        syscall(SYS_getppid);
    pthread_t threads[2];
    for (int thread = 0; thread < 2; ++thread)
        pthread_create(&threads[thread], 0, quarrel, 0);
    for (int thread = 0; thread < 2; ++thread)
        pthread_join(threads[thread], 0);
    printf("%p\n", (void*)pages);
    return 0;
}
