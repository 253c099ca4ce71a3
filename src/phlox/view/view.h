// All of a view: the choices, the same for every output, the samples that pass, the labels of frames, and the
// totals.
#pragma once

#include "phlox/view/call_tree.h"
#include "phlox/view/choices.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/module_of_file.h"
#include "phlox/view/sample_filter.h"
