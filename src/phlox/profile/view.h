// All of a view: the choices, the same for every output, the samples that pass, the labels of frames, and the
// totals.
#pragma once

#include "phlox/profile/call_tree.h"
#include "phlox/profile/choices.h"
#include "phlox/profile/frame_labels.h"
#include "phlox/profile/module_of_file.h"
#include "phlox/profile/sample_filter.h"
