// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"errors"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

// mostAlternatives is how many alternatives (['a','b']) a path may have, multiplied: each
// finds all of what is behind it, also if two are the same.
const mostAlternatives = 64

// parsePath reads a JSONPath that costs no more than a few looks at each part of an object:
// nothing ends one that is being evaluated. It may panic, as what evaluates it may.
func parsePath(name, path string) (*jsonpath.JSONPath, error) {
	if len(path) > longestPath {
		return nil, fmt.Errorf("it has more than %d bytes", longestPath)
	}
	text := "{" + path + "}"
	tree, err := jsonpath.Parse(name, text)
	if err != nil {
		return nil, err
	}
	effort := pathEffort{alternatives: 1}
	if err := effort.add(tree.Root); err != nil {
		return nil, err
	}
	parsed := jsonpath.New(name).AllowMissingKeys(true)
	return parsed, parsed.Parse(text)
}

// pathEffort is how often a path has what finds values more than once.
type pathEffort struct{ descents, alternatives int }

// add returns an error for what is too much.
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
		// Of sixty maps inside each other six of them find fifty million values.
		case e.descents > 1:
			return errors.New("it may go into all that is below (..) once only")
		case e.alternatives > mostAlternatives:
			return fmt.Errorf("it may have %d alternatives in all, those of each place multiplied", mostAlternatives)
		}
		for _, list := range below {
			if err := e.add(list); err != nil {
				return err
			}
		}
	}
	return nil
}
