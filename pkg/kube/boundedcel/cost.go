// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/library"
)

// bytesOfOne is how many bytes of a string an added function reads for one unit of cost. JSON takes
// about 20 ns for each.
const bytesOfOne = 5

// costs are those of Kubernetes. For an added function they are the cost of reading its strings.
// CEL would charge one for each such call, so an expression could have a string of a megabyte read
// a hundred thousand times.
type costs struct {
	library.CostEstimator
	// shared has the functions whose costs CEL or Kubernetes knows.
	shared *cel.Env
}

// CallCost implements the interpreter's interface.
func (c costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if c.shared.HasFunction(function) {
		return c.CostEstimator.CallCost(function, overload, args, result)
	}
	cost := uint64(1)
	for _, arg := range args {
		if text, ok := arg.(types.String); ok {
			cost += uint64(len(text)) / bytesOfOne
		}
	}
	return &cost
}
