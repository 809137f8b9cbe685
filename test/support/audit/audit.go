// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit counts what was asked of a cluster of package env that keeps an audit
// log: who read or wrote which object how often. Requests are counted, so a busy machine counts
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

// Request is one for an object, or for some of a kind, that was not refused.
type Request struct {
	User string
	// What is the verb and the resource with its subresource, as in "patch works/status".
	What            string
	Namespace, Name string
	At              time.Time
}

// IsWrite reports whether it changed something.
func (r Request) IsWrite() bool {
	verb, _, _ := strings.Cut(r.What, " ")
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

// Is reports whether it was for that resource, or for a subresource of it.
func (r Request) Is(resource string) bool {
	_, what, _ := strings.Cut(r.What, " ")
	what, _, _ = strings.Cut(what, "/")
	return what == resource
}

// asked are resources, with their subresources, that are created to ask something: nothing
// is stored.
var asked = map[string]bool{
	"serviceaccounts/token": true,
	"subjectaccessreviews":  true, "selfsubjectaccessreviews": true, "localsubjectaccessreviews": true,
	"tokenreviews": true, "selfsubjectreviews": true,
}

// Requests are those that the cluster in a folder got after a time.
func Requests(dir string, after time.Time) (all []Request, err error) {
	err = read(dir, func(event *auditv1.Event) {
		if r, ok := requestOf(event); ok && r.At.After(after) {
			all = append(all, r)
		}
	})
	return all, err
}

// Watched is whether a user has begun to watch a resource of the cluster in a folder.
func Watched(dir, user, resource string) (watched bool, err error) {
	err = read(dir, func(event *auditv1.Event) {
		watched = watched || event.Stage == auditv1.StageResponseStarted && event.Verb == "watch" && event.User.Username == user &&
			event.ObjectRef != nil && event.ObjectRef.Resource == resource
	})
	return watched, err
}

// read reads what the cluster in a folder has written, from the beginning.
func read(dir string, each func(*auditv1.Event)) (err error) {
	file, err := os.Open(filepath.Join(dir, "audit.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			//lint:ignore nilerr What follows is half a line: the API server is about to write the rest.
			return nil
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		each(&event)
	}
}

func requestOf(event *auditv1.Event) (Request, bool) {
	const firstFailure = 300
	object, response := event.ObjectRef, event.ResponseStatus
	if event.Stage != auditv1.StageResponseComplete || object == nil || response == nil || response.Code >= firstFailure {
		return Request{}, false
	}
	what := object.Resource
	if object.Subresource != "" {
		what += "/" + object.Subresource
	}
	if asked[what] {
		return Request{}, false
	}
	return Request{
		User: event.User.Username, What: event.Verb + " " + what,
		Namespace: object.Namespace, Name: object.Name, At: event.RequestReceivedTimestamp.Time,
	}, true
}

// Counted is how often each was asked.
type Counted map[string]int

// Count counts the requests for which which returns true.
func Count(requests []Request, which func(Request) bool) Counted {
	c := Counted{}
	for _, r := range requests {
		if which(r) {
			c[r.What]++
		}
	}
	return c
}

// Of is how often the named were asked together; with no name, all.
func (c Counted) Of(what ...string) int {
	sum := 0
	for name, n := range c {
		if len(what) == 0 || slices.Contains(what, name) {
			sum += n
		}
	}
	return sum
}

// Per is a table for people: how often each was asked for each of n.
func (c Counted) Per(n int) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&text, "%8.2f  %s\n", float64(c[name])/float64(n), name)
	}
	fmt.Fprintf(&text, "%8.2f  together\n", float64(c.Of())/float64(n))
	return text.String()
}
