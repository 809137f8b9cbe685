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

// maxValueBytes limits the length of one string after expansion. The override's own size limits the
// value of a patch, and variables must not multiply it.
const maxValueBytes = 256 << 10

// Expand replaces the variables in all strings of a JSON value, but not in the keys of its objects.
// Other strings, including foreign "${...}", stay. An error tells the author of the value what the
// member lacks.
func Expand(raw []byte, member Member) ([]byte, error) {
	if len(raw) == 0 {
		return nil, errors.New("value is missing")
	}
	if !strings.Contains(string(raw), "${") {
		return raw, nil
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber() // Numbers must not be rounded.
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

// expandText expands a text once. Values are not expanded again, because otherwise a member could
// inject variables.
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

// variable returns the value of the variable at the beginning of a text, and the rest of the text. An
// unknown variable is its own value.
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
			return "", "", fmt.Errorf("member %q has no %s %q, which the value uses: %s or change the value", m.Name, from.what, key, from.remedy)
		}
		return value, after, nil
	}
	return variableStart, text[len(variableStart):], nil
}
