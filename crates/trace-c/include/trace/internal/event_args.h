// The older path of <lib/trace/internal/event_args.h>.
#pragma once

#include <lib/trace/internal/event_args.h>
