// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// maxRows limits the objects of a page.
const maxRows = 500

// search is a query across members and its result.
type search struct {
	Kind, Namespace, Selector, Members string
	// Common and Other are the kinds that can be selected.
	Common, Other []overview.Kind
	Columns       []string
	Rows          []row
	// NameAt is the index of the column with the names of objects.
	NameAt   int
	Warnings []string
	Problem  string
	// Truncated is true if there are more objects than Rows.
	Truncated bool
	of        overview.Kind
}

// row is an object. Link is its own page, if it has one.
type row struct {
	Link  string
	Cells []string
}

// parseSearch parses the query of a page.
func (c *Console) parseSearch(ctx context.Context, q url.Values) *search {
	s := &search{Kind: cmp.Or(q.Get("kind"), pods), Namespace: q.Get("namespace"), Selector: q.Get("selector"), Members: q.Get("members"), Common: commonKinds}
	other, err := c.kinds(ctx)
	if err != nil {
		s.Warnings = append(s.Warnings, "The list of kinds may be out of date: "+err.Error())
	}
	s.Other = other
	found := false
	if s.of, found = named(slices.Concat(commonKinds, other), s.Kind); !found {
		s.Problem = fmt.Sprintf("Unknown kind %q. Select a kind from the list.", s.Kind)
	}
	return s
}

// search lists one kind across members with the fleet view, as the user.
func (c *Console) search(w http.ResponseWriter, r *http.Request) {
	s := c.parseSearch(r.Context(), r.URL.Query())
	if s.Problem == "" {
		if err := c.fill(r.Context(), s); err != nil {
			s.Problem = err.Error()
		}
	}
	follow := url.Values{"kind": {s.Kind}, "namespace": {s.Namespace}, "selector": {s.Selector}, "members": {s.Members}}
	c.render(w, "search", http.StatusOK, page{Title: "Search members", Here: "search", Follow: follow.Encode(), Data: s})
}

// request returns target, parameters and path of the request for the list.
func (s *search) request() (to memberconfig.Target, params map[string]string, path []string, err error) {
	view := ""
	if s.Members != "" {
		view = "labels:" + strings.ReplaceAll(s.Members, "/", ":")
	}
	if to, err = memberconfig.View(view); err != nil {
		return to, nil, nil, err
	}
	params = map[string]string{}
	if s.Selector != "" {
		params["labelSelector"] = s.Selector
	}
	path = []string{s.of.Path}
	if s.Namespace != "" && s.of.Namespaced {
		if problems := validation.IsDNS1123Label(s.Namespace); len(problems) > 0 {
			return to, nil, nil, fmt.Errorf("invalid namespace %q: %s", s.Namespace, problems[0])
		}
		path = append(path, "namespaces", s.Namespace)
	}
	return to, params, append(path, s.of.Resource), nil
}

func (c *Console) fill(ctx context.Context, s *search) error {
	to, params, path, err := s.request()
	if err != nil {
		return err
	}
	params["limit"] = strconv.Itoa(maxRows)
	table, warnings, err := c.Hub.GetTable(ctx, to, params, path...)
	s.Warnings = append(s.Warnings, warnings...)
	if err != nil {
		return fmt.Errorf("listing %s: %w", s.Kind, err)
	}
	s.take(table)
	return nil
}

// take fills in the columns that kubectl shows without -o wide.
func (s *search) take(table *metav1.Table) {
	var shown []int
	cluster := -1
	for i, column := range table.ColumnDefinitions {
		if column.Name == "Cluster" && cluster < 0 {
			cluster = i
		}
		if column.Priority == 0 {
			shown = append(shown, i)
			s.Columns = append(s.Columns, column.Name)
		}
	}
	s.Columns = append([]string{"Namespace"}, s.Columns...)
	s.NameAt = slices.Index(s.Columns, "Name")
	for i := range table.Rows {
		var object metav1.PartialObjectMetadata
		_ = json.Unmarshal(table.Rows[i].Object.Raw, &object) // A row whose object cannot be decoded has no name.
		one := row{Cells: []string{object.Namespace}}
		for _, at := range shown {
			if at < len(table.Rows[i].Cells) {
				one.Cells = append(one.Cells, fmt.Sprint(table.Rows[i].Cells[at]))
			}
		}
		if s.Kind == pods && cluster >= 0 && cluster < len(table.Rows[i].Cells) {
			of := url.Values{"member": {fmt.Sprint(table.Rows[i].Cells[cluster])}, "namespace": {object.Namespace}, "name": {object.Name}}
			one.Link = "/pod?" + of.Encode()
		}
		s.Rows = append(s.Rows, one)
	}
	s.Truncated = table.Continue != ""
}
