// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// ToJSON converts one document of YAML, of which JSON is a subset, to JSON: "null" for an empty
// one. Of a text with several documents it reads the first. The error is a *LimitError, or
// describes the problem and its line without quoting anything.
func ToJSON(text []byte, limits Limits) ([]byte, error) {
	value, err := read(text, limits)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, errors.New("it has a number that JSON does not support")
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Unmarshal reads one document as ToJSON does, into a value with JSON tags. It ignores fields that
// the value does not have. An error may quote the text where a value does not fit its field:
// callers that read Secrets must not pass it on.
func Unmarshal(text []byte, limits Limits, into any) error {
	return unmarshal(text, limits, into, yaml.Unmarshal)
}

// UnmarshalStrict is Unmarshal, with an error for fields that the value does not have.
func UnmarshalStrict(text []byte, limits Limits, into any) error {
	return unmarshal(text, limits, into, yaml.UnmarshalStrict)
}

// unmarshal passes the text without aliases to Kubernetes' decoder, which also converts numbers to
// strings where the field is one.
func unmarshal(text []byte, limits Limits, into any, decode func([]byte, any, ...yaml.JSONOpt) error) error {
	raw, err := ToJSON(text, limits)
	if err != nil {
		return err
	}
	return decode(raw, into)
}

func read(text []byte, limits Limits) (any, error) {
	if len(text) > limits.Bytes {
		return nil, &LimitError{What: "bytes", Most: limits.Bytes}
	}
	if line, over := beginnings(text, limits.Values); over {
		return nil, &LimitError{What: "values", Most: limits.Values, Line: line}
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(text, &document); err != nil {
		return nil, syntaxError(err)
	}
	if document.IsZero() {
		return nil, nil
	}
	r := reader{limits: limits, most: limits.expanded(text)}
	return r.value(document.Content[0], 1)
}

// beginnings reports whether a text may hold more than that many values, and on which line. Every
// value but the first follows an indicator or begins a line, so this is an upper limit. It also
// counts indicators inside scalars, so the limit is four times as high. It limits the size of the
// parsed tree.
func beginnings(text []byte, most int) (line int, over bool) {
	line, found := 1, 0
	for i, c := range text {
		switch c {
		case '\n', '\r':
			line++
		case ',', '[', '{', ':', '?':
		case '-':
			if i+1 < len(text) && text[i+1] == '-' {
				continue // A ruler, or PEM.
			}
		default:
			continue
		}
		if found++; found > 4*most {
			return line, true
		}
	}
	return line, false
}

var lineOf = regexp.MustCompile(`line \d+`)

// syntaxError keeps only the position from the parser's message, because the message may quote the
// text.
func syntaxError(err error) error {
	if where := lineOf.FindString(err.Error()); where != "" {
		return fmt.Errorf("near %s: it is not YAML", where)
	}
	return errors.New("it is not YAML")
}

// reader converts nodes to values, and counts them.
type reader struct {
	limits Limits
	// most is the maximum decoded size.
	most                   int
	values, bytes, aliases int
}

func (r *reader) value(n *yamlv3.Node, depth int) (any, error) {
	if err := r.count(n, depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yamlv3.AliasNode:
		if r.aliases++; r.aliases > r.limits.Aliases {
			return nil, &LimitError{What: "aliases", Most: r.limits.Aliases, Line: n.Line}
		}
		return r.value(n.Alias, depth+1)
	case yamlv3.SequenceNode:
		if err := tagged(n, "!!seq"); err != nil {
			return nil, err
		}
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			value, err := r.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yamlv3.MappingNode:
		return r.mapping(n, depth)
	}
	return scalar(n)
}

// count refuses a node that exceeds a limit. A node that contains itself through an alias exceeds
// the depth.
func (r *reader) count(n *yamlv3.Node, depth int) error {
	r.values++
	r.bytes += length(n.Value) + 1
	switch {
	case depth > r.limits.Depth:
		return &LimitError{What: "levels", Most: r.limits.Depth, Line: n.Line}
	case r.values > r.limits.Values:
		return &LimitError{What: "values, with what its aliases repeat", Most: r.limits.Values, Line: n.Line}
	case r.bytes > r.most:
		return &LimitError{What: "bytes, with what its aliases repeat", Most: r.most, Line: n.Line}
	}
	return nil
}

// length estimates the bytes of a string in JSON, where a control character has six.
func length(text string) int {
	length := len(text)
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			length += 5
		}
	}
	return length
}

func (r *reader) mapping(n *yamlv3.Node, depth int) (any, error) {
	if err := tagged(n, "!!map"); err != nil {
		return nil, err
	}
	made := make(map[string]any, len(n.Content)/2)
	var merged []map[string]any
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, valueNode := n.Content[i], n.Content[i+1]
		if isMerge(keyNode) {
			from, err := r.merged(valueNode, depth)
			if err != nil {
				return nil, err
			}
			merged = append(merged, from...)
			continue
		}
		key, err := r.key(keyNode, depth)
		if err != nil {
			return nil, err
		}
		if _, twice := made[key]; twice {
			return nil, fmt.Errorf("line %d: a key occurs twice in its map", keyNode.Line)
		}
		if made[key], err = r.value(valueNode, depth+1); err != nil {
			return nil, err
		}
	}
	for _, from := range merged {
		for key, value := range from {
			if _, ok := made[key]; !ok {
				made[key] = value
			}
		}
	}
	return made, nil
}

func isMerge(key *yamlv3.Node) bool {
	return key.Kind == yamlv3.ScalarNode && key.Value == "<<" && key.ShortTag() == "!!merge"
}

// merged are the maps that `<<` names, one or a list.
func (r *reader) merged(n *yamlv3.Node, depth int) ([]map[string]any, error) {
	value, err := r.value(n, depth+1)
	if err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	maps := make([]map[string]any, 0, len(list))
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("line %d: << needs a map or a list of maps", n.Line)
		}
		maps = append(maps, m)
	}
	return maps, nil
}

// key reads a key of a map, which is a string in JSON.
func (r *reader) key(n *yamlv3.Node, depth int) (string, error) {
	value, err := r.value(n, depth+1)
	if err != nil {
		return "", err
	}
	switch k := value.(type) {
	case string:
		return k, nil
	case bool, int64, uint64:
		return fmt.Sprint(k), nil
	}
	return "", fmt.Errorf("line %d: a key must be a text, a whole number or a boolean", n.Line)
}
