// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// column is the part of a definition that clients need for the layout of a table. Descriptions for
// people are left out: no client shows them, and a token has to carry the columns to the next page.
type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
}

// maxColumns limits the columns of a table: each row gets a cell for each of them, and those of two
// members are compared with each other.
const maxColumns = 1000

// clusterColumn names the member of a row.
var clusterColumn = column{Name: "Cluster", Type: "string", Description: "the member that has the object"}

// Columns are the columns of a response: the member's column, then those of the first member's
// table.
type Columns struct {
	// text is the first member's definitions as it wrote them, so that equal ones need not be
	// parsed.
	text    []byte
	columns []column
}

// NewColumns parses the columns of the first table.
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
	if len(columns) > maxColumns {
		return nil, fmt.Errorf("%w: it has more than %d columns", errSyntax, maxColumns)
	}
	for i := range columns {
		columns[i].Description = ""
	}
	return columns, nil
}

// Definitions are the columnDefinitions of the response.
func (c *Columns) Definitions() ([]byte, error) {
	return json.Marshal(append([]column{clusterColumn}, c.columns...))
}

// nameAt is the index of the column with the name, or -1.
func (c *Columns) nameAt() int {
	return slices.IndexFunc(c.columns, func(of column) bool { return of.Format == "name" })
}

// Fit makes the marker put a member's cells under the columns of the response, because a member of
// another version may have others. A column that the member lacks is empty. So is one of another
// type, because clients trust the definition.
func (c *Columns) Fit(m *Marker, definitions []byte) error {
	m.cells = nil
	m.name = c.nameAt()
	if bytes.Equal(definitions, c.text) {
		return nil
	}
	other, err := parseColumns(definitions)
	if err != nil || slices.Equal(other, c.columns) {
		return err
	}
	m.cells = make([]int, len(c.columns))
	for i, ours := range c.columns {
		m.cells[i] = slices.IndexFunc(other, func(of column) bool { return of.Name == ours.Name && of.Type == ours.Type })
	}
	return nil
}
