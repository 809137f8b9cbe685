// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Functions of Kubernetes' library that read a quantity.
const (
	readsQuantity = "quantity"
	knowsQuantity = "isQuantity"
)

// BoundedQuantities makes quantity() and isQuantity() use untrusted.Quantity. Their cost counts the
// length of the text, but twelve bytes can take minutes. It is for programs in other environments.
func BoundedQuantities() cel.ProgramOption {
	return cel.CustomDecoratorV2(func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := node.(interpreter.InterpretableCall)
		if !ok || call.Function() != readsQuantity && call.Function() != knowsQuantity {
			return node, nil
		}
		return quantityCall{call}, nil
	})
}

// quantityCall is a call of one of the two functions.
type quantityCall struct{ interpreter.InterpretableCall }

// Exec evaluates the argument and reads it.
func (c quantityCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return c.read(c.Args()[0].Exec(frame))
}

// Eval does the same without a frame.
func (c quantityCall) Eval(activation interpreter.Activation) ref.Val {
	return c.read(c.Args()[0].Eval(activation))
}

func (c quantityCall) read(arg ref.Val) ref.Val {
	text, ok := arg.Value().(string)
	if types.IsUnknownOrError(arg) || !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	quantity, err := untrusted.Quantity(text)
	if c.Function() == knowsQuantity {
		return types.Bool(err == nil)
	}
	if err != nil {
		return types.WrapErr(err)
	}
	return apiservercel.Quantity{Quantity: &quantity}
}
