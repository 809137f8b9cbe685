// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"fmt"
	"math"

	yamlv3 "go.yaml.in/yaml/v3"
)

// oldBools are the boolean words of YAML 1.1 that YAML 1.2 treats as strings.
var oldBools = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

const explicitOrQuoted = yamlv3.TaggedStyle | yamlv3.DoubleQuotedStyle | yamlv3.SingleQuotedStyle | yamlv3.LiteralStyle | yamlv3.FoldedStyle

// scalar is the type that Kubernetes would give a scalar: nil, a bool, an int64, a uint64, a
// float64 or a string.
func scalar(n *yamlv3.Node) (any, error) {
	if n.Style&explicitOrQuoted == 0 {
		if word, ok := oldBools[n.Value]; ok {
			return word, nil
		}
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil, nil
	case "!!str", "!!timestamp", "!!merge":
		return n.Value, nil
	case "!!bool", "!!int", "!!float":
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, fmt.Errorf("line %d: it is not of the type that its tag says", n.Line)
		}
		return number(value, n.Line)
	}
	return nil, unknownTag(n)
}

func number(value any, line int) (any, error) {
	switch v := value.(type) {
	case bool, int64, uint64:
		return v, nil
	case int:
		return int64(v), nil
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("line %d: it is a number that JSON does not support", line)
}

// tagged refuses a map or list with another type's tag.
func tagged(n *yamlv3.Node, tag string) error {
	if n.ShortTag() != tag {
		return unknownTag(n)
	}
	return nil
}

func unknownTag(n *yamlv3.Node) error {
	return fmt.Errorf("line %d: it has a tag for which there is no type in JSON", n.Line)
}
