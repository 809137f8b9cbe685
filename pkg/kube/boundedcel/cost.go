// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/library"
)

// bytesOfOne is how many bytes of a text a function of ours reads for one unit of cost. JSON
// takes about 20 ns for each.
const bytesOfOne = 5

// costs of calls are those of Kubernetes, and of a function that somebody added what reading
// its texts takes. CEL would have each such call cost one, whatever it reads: an expression
// could have a text of a megabyte read a hundred thousand times.
type costs struct {
	library.CostEstimator
	// shared has the functions of which CEL or Kubernetes knows the costs.
	shared *cel.Env
}

// CallCost is for the interpreter.
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
