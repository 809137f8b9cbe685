// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

func compiler(t *testing.T) *Compiler {
	t.Helper()
	c, err := NewCompiler(cel.Variable("n", cel.IntType))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRun_SpendsBudget(t *testing.T) {
	program, err := compiler(t).Compile("n + 1 + n")
	if err != nil {
		t.Fatal(err)
	}
	budget := uint64(10)
	if got, err := program.Run(map[string]any{"n": 3}, &budget); err != nil || got != int64(7) || budget >= 10 {
		t.Errorf("%v, %v, and %d is left of 10", got, err, budget)
	}
	budget = 1
	if _, err := program.Run(map[string]any{"n": 3}, &budget); !errors.Is(err, ErrTooExpensive) || budget != 0 {
		t.Errorf("%v, and %d is left of 1", err, budget)
	}
}

func TestCompile_CachesResultsAndErrors(t *testing.T) {
	c := compiler(t)
	for text, want := range map[string]string{"n > 1": "", "m > 1": "undeclared reference to 'm'", strings.Repeat(" ", 20<<10) + "n": "the limit is 16384"} {
		first, err := c.Compile(text)
		again, errAgain := c.Compile(text)
		if first != again || (err == nil) != (want == "") || !errors.Is(errAgain, err) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v, then %v, want %q", text, err, errAgain, want)
		}
	}
	more, err := c.With(cel.Variable("m", cel.IntType))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := more.Compile("m > n"); err != nil {
		t.Error(err)
	}
	for i := range maxPrograms + 10 {
		if _, err := c.Compile(strings.Repeat(" ", i) + "n"); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.programs) > maxPrograms {
		t.Errorf("%d expressions are kept", len(c.programs))
	}
}

// A call costs more than one.
func TestRun_AddedFunctionCostsWhatItReads(t *testing.T) {
	read := 0
	c, err := NewCompiler(cel.Variable("text", cel.StringType), cel.Function("read", cel.MemberOverload("string_read", []*cel.Type{cel.StringType}, cel.BoolType,
		cel.UnaryBinding(func(ref.Val) ref.Val { read++; return types.True }))))
	if err != nil {
		t.Fatal(err)
	}
	program, err := c.Compile(`[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(b, text.read()))`)
	if err != nil {
		t.Fatal(err)
	}
	budget := uint64(TotalCost)
	if got, err := program.Run(map[string]any{"text": "short"}, &budget); err != nil || got != true || read != 100 {
		t.Errorf("%v, %v: a short text was read %d times, not a hundred", got, err, read)
	}
	read, budget = 0, TotalCost
	if _, err := program.Run(map[string]any{"text": strings.Repeat("x", 1<<20)}, &budget); err == nil || read > 10 {
		t.Errorf("a megabyte was read %d times, with error %v", read, err)
	}
}
