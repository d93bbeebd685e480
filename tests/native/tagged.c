// Markers of several tags, as the system's own processes write them.
#define ATRACE_TAG ATRACE_TAG_VIEW
#ifdef __cplusplus
#include <utils/Trace.h>
#else
#include <cutils/trace.h>
#endif
#include <android/trace.h>
#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    printf("%#" PRIx64 " %d\n", atrace_get_enabled_tags(), atrace_is_tag_enabled(ATRACE_TAG_APP) != 0);
    {
#ifdef __cplusplus
        ATRACE_NAME("view");
#else
        ATRACE_BEGIN("view");
#endif
        ATRACE_INT("views", -7);
        ATRACE_INSTANT("drawn");
        ATRACE_ASYNC_BEGIN("layout", 3);
        ATRACE_ASYNC_END("layout", 3);
#ifndef __cplusplus
        ATRACE_END();
#endif
    }
    atrace_begin(ATRACE_TAG_CAMERA, "camera");
    atrace_end(ATRACE_TAG_CAMERA);
    ATrace_beginSection("application");
    ATrace_endSection();
    atrace_begin(ATRACE_TAG_NEVER, "never");
    atrace_end(ATRACE_TAG_NEVER);
    atrace_begin(ATRACE_TAG_VIEW, (const char*)0);
    return 0;
}
