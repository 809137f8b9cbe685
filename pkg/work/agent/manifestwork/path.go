// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"errors"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

// mostAlternatives limits the product of the alternatives (['a','b']) in a path. Each of them
// evaluates the rest of the path, even if two are equal.
const mostAlternatives = 64

// parsePath parses a JSONPath and rejects expensive ones, because an evaluation cannot be
// cancelled. It can panic, as the evaluation can.
func parsePath(name, path string) (*jsonpath.JSONPath, error) {
	if len(path) > longestPath {
		return nil, fmt.Errorf("it has more than %d bytes", longestPath)
	}
	text := "{" + path + "}"
	tree, err := jsonpath.Parse(name, text)
	if err != nil {
		return nil, err
	}
	tuning := pathEffort{alternatives: 1}
	if err := tuning.add(tree.Root); err != nil {
		return nil, err
	}
	parsed := jsonpath.New(name).AllowMissingKeys(true)
	return parsed, parsed.Parse(text)
}

// pathEffort counts the operators of a path that evaluate the rest of the path repeatedly.
type pathEffort struct{ descents, alternatives int }

// add returns an error if the path is too expensive.
func (e *pathEffort) add(list *jsonpath.ListNode) error {
	for _, node := range list.Nodes {
		below := []*jsonpath.ListNode{}
		switch node := node.(type) {
		case *jsonpath.ListNode:
			below = append(below, node)
		case *jsonpath.RecursiveNode:
			e.descents++
		case *jsonpath.UnionNode:
			e.alternatives *= max(1, len(node.Nodes))
			below = node.Nodes
		case *jsonpath.FilterNode:
			below = append(below, node.Left, node.Right)
		case *jsonpath.IdentifierNode:
			return errors.New("loops (range) are not evaluated")
		}
		switch {
		// In sixty nested maps, six of these operators match fifty million values.
		case e.descents > 1:
			return errors.New("recursive descent (..) is allowed only once")
		case e.alternatives > mostAlternatives:
			return fmt.Errorf("the product of all alternatives must not exceed %d", mostAlternatives)
		}
		for _, list := range below {
			if err := e.add(list); err != nil {
				return err
			}
		}
	}
	return nil
}
