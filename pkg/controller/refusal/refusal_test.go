// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestOf_DistinguishesRefusalFromFailure(t *testing.T) {
	no := New("TooLong", "name %q is too long: %w", "x", io.ErrShortBuffer)
	if want := `name "x" is too long: short buffer`; no.Message != want || no.Error() != want {
		t.Errorf("message %q, want %q", no.Message, want)
	}
	if !errors.Is(no, io.ErrShortBuffer) {
		t.Error("the cause is lost")
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a refusal":                 {no, "TooLong"},
		"a refusal in an error":     {fmt.Errorf("member %q: %w", "a", no), "TooLong"},
		"of two refusals the outer": {New("Outer", "outer: %w", no), "Outer"},
		"a failure":                 {io.EOF, ""},
		"nothing":                   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReasonOf(tc.err); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
			if is := Of(tc.err) != nil; is != (tc.want != "") {
				t.Errorf("a refusal: %v", is)
			}
		})
	}
}
