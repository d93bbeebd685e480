// The older path of <lib/trace/internal/event_common.h>.
#pragma once

#include <lib/trace/internal/event_common.h>
