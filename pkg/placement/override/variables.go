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

// Expand replaces the variables in all texts of a JSON value, not in the keys of
// its objects. Other texts, also "${...}" of somebody else's, stay as they are. An error
// tells the author of the value what the member lacks.
func Expand(raw []byte, member Member) ([]byte, error) {
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

// expandText reads a text once: what a variable stands for is not read again, or a
// member could ask for more than was written.
func expandText(text string, member Member) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, variableStart)
		out.WriteString(before)
		if out.Len() > maxValueBytes {
			return "", fmt.Errorf("a text becomes longer than %d bytes", maxValueBytes)
		}
		if !found {
			return out.String(), nil
		}
		value, after, err := member.variable(variableStart + rest)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = after
	}
}

const variableStart = "${MEMBER-CLUSTER-"

// variable is what the variable at the beginning of a text stands for, and what follows
// it. If it is none of ours, that is how it begins.
func (m Member) variable(text string) (value, after string, err error) {
	if after, ok := strings.CutPrefix(text, placementv1beta1.MemberNameVariable); ok {
		return m.Name, after, nil
	}
	for _, from := range []struct {
		prefix, what, remedy string
		values               map[string]string
	}{
		{placementv1beta1.MemberLabelVariablePrefix, "label", "label the MemberCluster", m.Labels},
		{placementv1beta1.MemberPropertyVariablePrefix, "property", "see the status of the MemberCluster", m.Properties},
		{placementv1beta1.MemberAnnotationVariablePrefix, "annotation", "annotate the MemberCluster", m.Annotations},
	} {
		rest, ok := strings.CutPrefix(text, from.prefix)
		if !ok {
			continue
		}
		key, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", "", fmt.Errorf("the variable %s has no closing brace", text)
		}
		value, ok := from.values[key]
		if !ok {
			return "", "", fmt.Errorf("member %q has no %s %q, which the value asks for: %s or change the value", m.Name, from.what, key, from.remedy)
		}
		return value, after, nil
	}
	return variableStart, text[len(variableStart):], nil
}
