// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/test/support/env"
)

const worksMember = "member-1"

// worksBed is a hub and a member, with only the Work part of an agent, which runs in this process.
type worksBed struct {
	hub, member      client.WithWatch
	hubConfig        *rest.Config // counted, as the member's is
	memberConfig     *rest.Config
	memberKubeconfig string
	kubectlPath      string
	asked            *asked
	stop             func()
}

func newWorksBed(b *testing.B) *worksBed {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	home, err := env.Home()
	if err != nil {
		b.Fatal(err)
	}
	clusters, err := env.StartAll(b.Context(), env.Options{Name: "hub"}, env.Options{Name: worksMember})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		for _, c := range clusters {
			if err := c.Stop(context.Background()); err != nil {
				b.Error(err)
			}
		}
	})
	w := &worksBed{asked: &asked{}, kubectlPath: filepath.Join(home, "bin", "kubectl")}
	w.hubConfig, w.memberConfig = clusters[0].Config(), clusters[1].Config()
	w.hubConfig.QPS, w.memberConfig.QPS = -1, -1
	if w.memberKubeconfig, err = clusters[1].Kubeconfig("kubectl", "system:masters"); err != nil {
		b.Fatal(err)
	}
	if w.hub, err = client.NewWithWatch(w.hubConfig, client.Options{Scheme: worksScheme(b)}); err != nil {
		b.Fatal(err)
	}
	if w.member, err = client.NewWithWatch(w.memberConfig, client.Options{Scheme: worksScheme(b)}); err != nil {
		b.Fatal(err)
	}
	for _, config := range []*rest.Config{w.hubConfig, w.memberConfig} {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{w.asked, next} })
	}
	if err := w.prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.start(b)
	b.Cleanup(func() { w.stop() })
	if _, err := w.apply(b.Context(), 1); err != nil { // the agent is there, and ConfigMaps are watched
		b.Fatal(err)
	}
	return w
}

func worksScheme(b *testing.B) *runtime.Scheme {
	b.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// prepare creates what joining creates.
func (w *worksBed) prepare(ctx context.Context) error {
	definitions, err := crds.ForHub(placementv1beta1.GroupName, clusterv1beta1.GroupVersion.Group)
	if err != nil {
		return err
	}
	for _, crd := range definitions {
		if err := w.hub.Create(ctx, crd); err != nil {
			return err
		}
	}
	namespace := clusterv1beta1.MemberNamespace(worksMember)
	if err := w.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	membership := &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: worksMember},
		Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin},
	}
	for {
		err := w.hub.Create(ctx, membership)
		if err == nil {
			break
		}
		if !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return apply.EnsureCRD(ctx, w.member)
}

func (w *worksBed) start(b *testing.B) {
	b.Helper()
	skip := true
	namespace := clusterv1beta1.MemberNamespace(worksMember)
	mgr, err := ctrl.NewManager(w.hubConfig, ctrl.Options{
		Scheme:     worksScheme(b),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		b.Fatal(err)
	}
	reached, err := engine.NewMember(w.memberConfig)
	if err != nil {
		b.Fatal(err)
	}
	if err := mgr.Add(manager.RunnableFunc(reached.Watcher.Run)); err != nil {
		b.Fatal(err)
	}
	reconciler, err := apply.New(apply.Options{Member: worksMember, MemberAPI: reached})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

func (w *worksBed) restart(b *testing.B) {
	b.Helper()
	w.stop()
	w.start(b)
}

func (w *worksBed) namespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	err := w.member.Create(ctx, namespace)
	return namespace.Name, err
}

func workOf(name string, objects []*corev1.ConfigMap) (*placementv1beta1.Work, error) {
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.MemberNamespace(worksMember), Name: name}}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
	}
	return work, nil
}

// deliver creates Works and waits until all of them are applied.
func (w *worksBed) deliver(ctx context.Context, works []*placementv1beta1.Work) error {
	return w.forEach(ctx, works,
		func(ctx context.Context, work *placementv1beta1.Work) error {
			return w.hub.Create(ctx, work.DeepCopy())
		},
		func(_ watch.Event, work *placementv1beta1.Work) bool {
			return meta.IsStatusConditionTrue(work.Status.Conditions, placementv1beta1.ConditionApplied)
		})
}

// forEach processes each Work and waits for the event that completes it.
func (w *worksBed) forEach(ctx context.Context, works []*placementv1beta1.Work,
	do func(context.Context, *placementv1beta1.Work) error, ended func(watch.Event, *placementv1beta1.Work) bool) error {
	return untilEach(ctx, w.hub, &placementv1beta1.WorkList{}, works, do, ended)
}

// untilEach processes objects of one namespace and waits for the event that completes each. The
// list is an empty one of their kind.
func untilEach[T client.Object](ctx context.Context, hub client.WithWatch, list client.ObjectList, objects []T,
	do func(context.Context, T) error, ended func(watch.Event, T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*patience)
	defer cancel()
	// Watch from now on: the initial 5,000 objects would be measured as well.
	namespace := client.InNamespace(objects[0].GetNamespace())
	if err := hub.List(ctx, list, namespace, client.Limit(1)); err != nil {
		return err
	}
	watched, err := hub.Watch(ctx, list, namespace,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return err
	}
	defer watched.Stop()
	missing := map[string]bool{}
	for _, object := range objects {
		missing[object.GetName()] = true
	}
	done := make(chan error, 1)
	go func() {
		err := sideways(objects, func(object T) error { return do(ctx, object) })
		if err != nil {
			cancel() // This also ends the watch, because not all can complete.
		}
		done <- err
	}()
	for len(missing) > 0 {
		event, open := <-watched.ResultChan()
		if !open {
			cancel()
			return fmt.Errorf("waiting for %d of %d objects: %w", len(missing), len(objects), errors.Join(ctx.Err(), <-done))
		}
		if object, ok := event.Object.(T); ok && ended(event, object) {
			delete(missing, object.GetName())
		}
	}
	return <-done
}

// withdraw deletes Works and waits until they are gone.
func (w *worksBed) withdraw(ctx context.Context, works []*placementv1beta1.Work) error {
	return w.forEach(ctx, works,
		func(ctx context.Context, work *placementv1beta1.Work) error {
			return w.hub.Delete(ctx, work.DeepCopy())
		},
		func(event watch.Event, _ *placementv1beta1.Work) bool { return event.Type == watch.Deleted })
}

// asked counts the agent's requests to hub and member, watches and their lists separately.
type asked struct{ reads, writes atomic.Int64 }

func (a *asked) counts() (reads, writes int) { return int(a.reads.Load()), int(a.writes.Load()) }

func (a *asked) total() int { return int(a.reads.Load() + a.writes.Load()) }

type counted struct {
	asked *asked
	next  http.RoundTripper
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case request.Method != http.MethodGet:
		c.asked.writes.Add(1)
	case strings.Count(request.URL.Path, "/") > 3 && !request.URL.Query().Has("resourceVersion") && !request.URL.Query().Has("watch") &&
		!strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata"):
		c.asked.reads.Add(1)
	}
	return c.next.RoundTrip(request)
}
