// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit counts what was written on a cluster of package env that keeps an audit
// log: who wrote which object how often. Requests are counted, so a busy machine counts
// the same as an idle one.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Write is a request that changed something.
type Write struct {
	User, Agent string
	// What is the verb and the resource with its subresource, as in "patch works/status".
	What            string
	Namespace, Name string
	At              time.Time
}

// asked are resources that are created to ask something: nothing is stored.
var asked = map[string]bool{
	"subjectaccessreviews": true, "selfsubjectaccessreviews": true, "localsubjectaccessreviews": true,
	"tokenreviews": true, "selfsubjectreviews": true,
}

// Writes are those that the cluster in a folder took after a time, and did not refuse.
func Writes(dir string, after time.Time) (all []Write, err error) {
	file, err := os.Open(filepath.Join(dir, "audit.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil //nolint:nilerr // What follows is half a line: the API server is about to write the rest.
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if w, ok := writeOf(&event); ok && w.At.After(after) {
			all = append(all, w)
		}
	}
}

func writeOf(event *auditv1.Event) (Write, bool) {
	const firstFailure = 300
	object, response := event.ObjectRef, event.ResponseStatus
	changes := slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb)
	if event.Stage != auditv1.StageResponseComplete || !changes || object == nil || asked[object.Resource] ||
		response == nil || response.Code >= firstFailure {
		return Write{}, false
	}
	what := event.Verb + " " + object.Resource
	if object.Subresource != "" {
		what += "/" + object.Subresource
	}
	return Write{
		User: event.User.Username, Agent: event.UserAgent, What: what,
		Namespace: object.Namespace, Name: object.Name, At: event.RequestReceivedTimestamp.Time,
	}, true
}

// Counted is how often each was written.
type Counted map[string]int

// Count counts those of writes that which wants.
func Count(writes []Write, which func(Write) bool) Counted {
	c := Counted{}
	for _, w := range writes {
		if which(w) {
			c[w.What]++
		}
	}
	return c
}

// Of is how often the named were written together; with no name, all.
func (c Counted) Of(what ...string) int {
	sum := 0
	for name, n := range c {
		if len(what) == 0 || slices.Contains(what, name) {
			sum += n
		}
	}
	return sum
}

// Per is a table for people: how often each was written for each of n.
func (c Counted) Per(n int) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&text, "%8.2f  %s\n", float64(c[name])/float64(n), name)
	}
	fmt.Fprintf(&text, "%8.2f  together\n", float64(c.Of())/float64(n))
	return text.String()
}
