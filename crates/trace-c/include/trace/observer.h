// The older path of <lib/trace/observer.h>.
#pragma once

#include <lib/trace/observer.h>
