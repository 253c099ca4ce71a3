// All of a view: the choices, the same for every output, which samples pass, what stands for a frame, and the
// totals.
#pragma once

#include "phlox/profile/call_tree.h"
#include "phlox/profile/choices.h"
#include "phlox/profile/frame_labels.h"
#include "phlox/profile/module_of_file.h"
#include "phlox/profile/sample_filter.h"
