// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
)

func TestQuantity_RefusesABillionDigits(t *testing.T) {
	c, err := NewCompiler(cel.Variable("x", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		value any
		err   string
	}{
		`quantity("1e-99999999").isGreaterThan(quantity("1"))`:         {err: "digits in its exponent"},
		`isQuantity("1e-99999999")`:                                    {value: false},
		`quantity(x.hostile).asInteger() == 0`:                         {err: "digits in its exponent"},
		`["1", "1e-99999999"].exists(q, isQuantity(q) && q != "1")`:    {value: false},
		`quantity(x.amount).isGreaterThan(quantity("1Gi"))`:            {value: true},
		`quantity(x.amount).add(quantity("512Mi")) == quantity("2Gi")`: {value: true},
		`isQuantity(x.amount)`:                                         {value: true},
		`isQuantity("many")`:                                           {value: false},
		`quantity("many").asInteger() == 0`:                            {err: "quantities must match"},
		`isQuantity(x.number)`:                                         {err: "no such overload"},
		`quantity(x.missing).asInteger() == 0`:                         {err: "no such key"},
	} {
		program, err := c.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		budget := uint64(TotalCost)
		got, err := program.Run(map[string]any{"x": map[string]any{"amount": "1536Mi", "number": 3, "hostile": "1e-99999999"}}, &budget)
		if want.err != "" && (err == nil || !strings.Contains(err.Error(), want.err)) || want.err == "" && (err != nil || got != want.value) {
			t.Errorf("%s is %v, %v, want %v %s", text, got, err, want.value, want.err)
		}
		if budget >= TotalCost {
			t.Errorf("%s cost nothing", text)
		}
	}
}
