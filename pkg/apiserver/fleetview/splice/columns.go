// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// column is what clients need of a definition to lay a table out. What explains it to
// people is left out: no client shows that, and a page must have the columns of the one
// before, which a token carries.
type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
}

// clusterColumn is the one in which a table says whose a row is.
var clusterColumn = column{Name: "Cluster", Type: "string", Description: "the member that has the object"}

// Columns are those of an answer: what the first member's table has, behind the member's.
type Columns struct {
	// text is as the first member wrote them, so that others alike need not be parsed.
	text    []byte
	columns []column
}

// NewColumns are the columns of the first table.
func NewColumns(definitions []byte) (*Columns, error) {
	columns, err := parseColumns(definitions)
	if err != nil {
		return nil, err
	}
	return &Columns{text: bytes.Clone(definitions), columns: columns}, nil
}

func parseColumns(definitions []byte) ([]column, error) {
	var columns []column
	if len(definitions) == 0 {
		return nil, nil
	}
	if len(definitions) > maxHead {
		return nil, fmt.Errorf("%w: its columns have more than %d bytes", errSyntax, maxHead)
	}
	if err := json.Unmarshal(definitions, &columns); err != nil {
		return nil, fmt.Errorf("%w: %w", errSyntax, err)
	}
	for i := range columns {
		columns[i].Description = ""
	}
	return columns, nil
}

// Definitions are the columnDefinitions of the answer.
func (c *Columns) Definitions() ([]byte, error) {
	return json.Marshal(append([]column{clusterColumn}, c.columns...))
}

// nameAt is which column has the name, or -1.
func (c *Columns) nameAt() int {
	return slices.IndexFunc(c.columns, func(of column) bool { return of.Format == "name" })
}

// Fit has the marker put a member's cells under the columns of the answer: a member of
// another version may have others. One that it has not is empty, one that is of another
// type too, since clients believe the definition.
func (c *Columns) Fit(m *Marker, definitions []byte) error {
	m.cells = nil
	m.name = c.nameAt()
	if bytes.Equal(definitions, c.text) {
		return nil
	}
	theirs, err := parseColumns(definitions)
	if err != nil || slices.Equal(theirs, c.columns) {
		return err
	}
	m.cells = make([]int, len(c.columns))
	for i, ours := range c.columns {
		m.cells[i] = slices.IndexFunc(theirs, func(of column) bool { return of.Name == ours.Name && of.Type == ours.Type })
	}
	return nil
}
