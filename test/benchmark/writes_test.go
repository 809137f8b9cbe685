// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// written is the number of writes of a kind with one verb, and their bytes.
type written struct {
	resource, verb string
	count, bytes   int
}

// An API server counts the bodies of accepted writes and their bytes by group, resource and verb.
var bodyMetric = regexp.MustCompile(`(?m)^apiserver_request_body_size_bytes_(sum|count)\{group="([^"]*)",resource="([^"]*)",verb="(create|update|patch)"\} (\S+)$`)

// isReport is true for writes of a member's status.
func (w written) isReport() bool {
	return strings.HasPrefix(w.resource, "internalmemberclusters") || strings.HasPrefix(w.resource, "memberclusters")
}

// uncounted is written continuously, or not stored.
var uncounted = map[string]bool{
	"leases.coordination.k8s.io": true,
	"events":                     true,
	"events.events.k8s.io":       true,
	"subjectaccessreviews.authorization.k8s.io": true,
	"tokenreviews.authentication.k8s.io":        true,
}

// parseWrites reads an API server's metrics.
func parseWrites(metrics string) ([]written, error) {
	type key struct{ resource, verb string }
	all := map[key]*written{}
	for _, match := range bodyMetric.FindAllStringSubmatch(metrics, -1) {
		k := key{strings.TrimSuffix(match[3]+"."+match[2], "."), match[4]}
		if uncounted[k.resource] {
			continue
		}
		value, err := strconv.ParseFloat(match[5], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metric of %s: %w", k.resource, err)
		}
		if all[k] == nil {
			all[k] = &written{resource: k.resource, verb: k.verb}
		}
		if match[1] == "count" {
			all[k].count = int(value)
		} else {
			all[k].bytes = int(value)
		}
	}
	var list []written
	for _, w := range all {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b written) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	})
	return list, nil
}

// since returns the writes between before and after.
func since(before, after []written) []written {
	var more []written
	for _, w := range after {
		for _, old := range before {
			if old.resource == w.resource && old.verb == w.verb {
				w.count, w.bytes = w.count-old.count, w.bytes-old.bytes
			}
		}
		if w.count > 0 {
			more = append(more, w)
		}
	}
	return more
}

func total(all []written) int {
	sum := 0
	for _, w := range all {
		sum += w.count
	}
	return sum
}

// bare writes as often and as much as was counted, to ConfigMaps, which no controller reads.
type bare struct {
	client    client.Client
	namespace string
	counted   []written
	// workers write in parallel and share the writes.
	workers int
}

func (r bare) write(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for worker := range r.workers {
		group.Go(func() error { return r.share(ctx, worker) })
	}
	return group.Wait()
}

// share is every nth write of one worker. The first creates the ConfigMap that later ones change,
// because a member's writes go to few objects.
func (r bare) share(ctx context.Context, worker int) error {
	var target *corev1.ConfigMap
	nth := 0
	for _, w := range r.counted {
		payload := strings.Repeat("x", w.bytes/w.count)
		for range w.count {
			if nth++; nth%r.workers != worker {
				continue
			}
			if w.verb == "create" || target == nil {
				target = r.configMap(payload)
				if err := r.client.Create(ctx, target); err != nil {
					return err
				}
				continue
			}
			if err := r.patch(ctx, target, payload, nth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r bare) configMap(payload string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, GenerateName: "written-"},
		Data:       map[string]string{"payload": payload},
	}
}

// patch changes the object with each call, because the API server stores no unchanged object.
func (r bare) patch(ctx context.Context, target *corev1.ConfigMap, payload string, nth int) error {
	changed := target.DeepCopy()
	changed.Data = map[string]string{"payload": strconv.Itoa(nth) + payload}
	if err := r.client.Patch(ctx, changed, client.MergeFrom(target)); err != nil {
		return err
	}
	*target = *changed
	return nil
}

func TestWritesAreThoseBetweenTwoReadings(t *testing.T) {
	const before = `# HELP apiserver_request_body_size_bytes of a request
apiserver_request_body_size_bytes_sum{group="",resource="namespaces",verb="create"} 814
apiserver_request_body_size_bytes_count{group="",resource="namespaces",verb="create"} 7
apiserver_request_body_size_bytes_sum{group="coordination.k8s.io",resource="leases",verb="update"} 10674
apiserver_request_body_size_bytes_count{group="coordination.k8s.io",resource="leases",verb="update"} 24
apiserver_request_body_size_bytes_sum{group="fleet.cattle.io",resource="clusters",verb="patch"} 700
apiserver_request_body_size_bytes_count{group="fleet.cattle.io",resource="clusters",verb="patch"} 2
`
	const after = `
apiserver_request_body_size_bytes_sum{group="",resource="namespaces",verb="create"} 914
apiserver_request_body_size_bytes_count{group="",resource="namespaces",verb="create"} 8
apiserver_request_body_size_bytes_sum{group="coordination.k8s.io",resource="leases",verb="update"} 11674
apiserver_request_body_size_bytes_count{group="coordination.k8s.io",resource="leases",verb="update"} 26
apiserver_request_body_size_bytes_sum{group="fleet.cattle.io",resource="clusters",verb="patch"} 700
apiserver_request_body_size_bytes_count{group="fleet.cattle.io",resource="clusters",verb="patch"} 2
apiserver_request_body_size_bytes_sum{group="fleet.cattle.io",resource="clusterregistrations",verb="create"} 1.2e+03
apiserver_request_body_size_bytes_count{group="fleet.cattle.io",resource="clusterregistrations",verb="create"} 3
`
	var read [2][]written
	for i, text := range []string{before, after} {
		var err error
		if read[i], err = parseWrites(text); err != nil {
			t.Fatalf("parseWrites: %v", err)
		}
	}
	want := []written{
		{resource: "clusterregistrations.fleet.cattle.io", verb: "create", count: 3, bytes: 1200},
		{resource: "namespaces", verb: "create", count: 1, bytes: 100},
	}
	if diff := gocmp.Diff(want, since(read[0], read[1]), gocmp.AllowUnexported(written{})); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
}
