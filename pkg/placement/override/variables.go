// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// maxValueBytes is how long one text may become by its variables: a value of a
// patch is bounded by the override's own size, and this keeps it from growing
// out of it.
const maxValueBytes = 256 << 10

// expand replaces the variables in all texts of a JSON value, not in the keys of
// its objects. Other texts, also "${...}" of somebody else's, stay as they are.
func expand(raw []byte, member Member) ([]byte, error) {
	if len(raw) == 0 {
		return nil, errors.New("value is missing")
	}
	if !strings.Contains(string(raw), "${") {
		return raw, nil
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber() // Numbers are not ours to round.
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("reading value: %w", err)
	}
	value, err := expandAll(value, member)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func expandAll(value any, member Member) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		return expandText(v, member)
	case []any:
		for i := range v {
			if v[i], err = expandAll(v[i], member); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range v {
			if v[key], err = expandAll(v[key], member); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func expandText(text string, member Member) (string, error) {
	text = strings.ReplaceAll(text, placementv1beta1.MemberNameVariable, member.Name)
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, placementv1beta1.MemberLabelVariablePrefix)
		out.WriteString(before)
		if out.Len() > maxValueBytes {
			return "", fmt.Errorf("a text becomes longer than %d bytes", maxValueBytes)
		}
		if !found {
			return out.String(), nil
		}
		key, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("the variable %s%s has no closing brace", placementv1beta1.MemberLabelVariablePrefix, rest)
		}
		value, ok := member.Labels[key]
		if !ok {
			return "", fmt.Errorf("member %q has no label %q, which the value asks for: label the MemberCluster or change the override", member.Name, key)
		}
		out.WriteString(value)
		text = after
	}
}
