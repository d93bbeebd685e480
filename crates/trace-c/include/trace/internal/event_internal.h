// The older path of <lib/trace/internal/event_internal.h>.
#pragma once

#include <lib/trace/internal/event_internal.h>
