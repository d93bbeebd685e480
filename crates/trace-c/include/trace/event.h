// The older path of <lib/trace/event.h>.
#pragma once

#include <lib/trace/event.h>
