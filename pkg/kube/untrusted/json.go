// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// UnmarshalJSON decodes text that must be JSON, so that YAML is an error. A text that exceeds a
// limit, or has a duplicate key in an object, which two readers could understand differently, is
// refused before it is decoded. JSON has no aliases. An error about a value that does not fit its
// field may quote it; other errors quote nothing.
func UnmarshalJSON(text []byte, limits Limits, into any) error {
	if len(text) > limits.Bytes {
		return &LimitError{What: "bytes", Most: limits.Bytes}
	}
	if err := checkJSON(text, limits); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// open is an object or a list that has not ended.
type open struct {
	// keys are the keys of an object so far; nil for a list.
	keys map[string]struct{}
	// inValue is true in an object after a key.
	inValue bool
}

// checkJSON reads a text token by token and keeps only the keys.
func checkJSON(text []byte, limits Limits) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var inside []*open
	for values := 1; ; values++ {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		line := func() int { return 1 + bytes.Count(text[:decoder.InputOffset()], []byte("\n")) }
		if err != nil {
			return fmt.Errorf("line %d: it is not JSON from there on", line())
		}
		if values > limits.Values {
			return &LimitError{What: "values", Most: limits.Values, Line: line()}
		}
		if end := token == json.Delim('}') || token == json.Delim(']'); end {
			inside = inside[:len(inside)-1]
			continue
		}
		if len(inside) > 0 && !inside[len(inside)-1].take(token) {
			return fmt.Errorf("line %d: a key occurs twice in its object", line())
		}
		switch token {
		case json.Delim('{'):
			inside = append(inside, &open{keys: map[string]struct{}{}})
		case json.Delim('['):
			inside = append(inside, &open{})
		}
		if len(inside) > limits.Depth {
			return &LimitError{What: "levels", Most: limits.Depth, Line: line()}
		}
	}
}

// take returns false for a duplicate key.
func (o *open) take(token json.Token) bool {
	if o.keys == nil {
		return true
	}
	if o.inValue = !o.inValue; !o.inValue {
		return true
	}
	key, ok := token.(string)
	_, twice := o.keys[key]
	o.keys[key] = struct{}{}
	return ok && !twice
}
