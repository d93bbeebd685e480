// The older path of <lib/trace/event_args.h>.
#pragma once

#include <lib/trace/event_args.h>
