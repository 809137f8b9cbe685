// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/work/agent/definitions"
	"fleetgate.io/fleetgate/pkg/work/agent/manifestwork"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
)

const manifestCluster = "cluster1"

// manifestBed is a hub and a cluster, with the ManifestWork part of an agent in this process.
type manifestBed struct {
	hub, member client.WithWatch
	hubConfig   *rest.Config // of the clients, not counted
	agentOfHub  *rest.Config // counted
	agentConfig *rest.Config // counted
	// atHub and atMember count the agent's requests to each.
	atHub, atMember *asked
	stop            func()
}

func newManifestBed(b *testing.B) *manifestBed {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	clusters, err := env.StartAll(b.Context(), env.Options{Name: "hub"}, env.Options{Name: manifestCluster})
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
	m := &manifestBed{atHub: &asked{}, atMember: &asked{}}
	m.hubConfig = build.Unlimited(clusters[0].Config())
	memberConfig := build.Unlimited(clusters[1].Config())
	m.agentOfHub, m.agentConfig = rest.CopyConfig(m.hubConfig), rest.CopyConfig(memberConfig)
	m.agentOfHub.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{m.atHub, next} })
	m.agentConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{m.atMember, next} })
	if m.hub, err = client.NewWithWatch(m.hubConfig, client.Options{Scheme: manifestScheme()}); err != nil {
		b.Fatal(err)
	}
	if m.member, err = client.NewWithWatch(memberConfig, client.Options{Scheme: manifestScheme()}); err != nil {
		b.Fatal(err)
	}
	if err := m.prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	m.start(b)
	b.Cleanup(func() { m.stop() })
	if _, err := m.apply(b.Context(), 1); err != nil { // the agent is there, and ConfigMaps are watched
		b.Fatal(err)
	}
	return m
}

func manifestScheme() *runtime.Scheme {
	return build.Scheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, workv1.AddToScheme, workv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme)
}

// prepare installs the CRDs and creates the cluster's namespace.
func (m *manifestBed) prepare(ctx context.Context) error {
	ours, err := crds.ForHub(workv1.GroupName, ocmclusterv1beta1.GroupName)
	if err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(m.hubConfig, envtest.CRDInstallOptions{CRDs: ours, MaxTime: patience}); err != nil {
		return err
	}
	if err := m.hub.Create(ctx, build.Namespace(manifestCluster)); err != nil {
		return err
	}
	return definitions.Ensure(ctx, m.member, workv1.GroupName)
}

// start runs the agent's part.
func (m *manifestBed) start(b *testing.B) {
	b.Helper()
	skip := true
	manager, err := ctrl.NewManager(m.agentOfHub, ctrl.Options{
		Scheme:     manifestScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{manifestCluster: {}}},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		b.Fatal(err)
	}
	reached, err := engine.NewMember(m.agentConfig)
	if err != nil {
		b.Fatal(err)
	}
	reconciler, err := manifestwork.New(manifestwork.Options{Cluster: manifestCluster, HubURL: m.hubConfig.Host, AgentID: "bench", MemberAPI: reached})
	if err != nil {
		b.Fatal(err)
	}
	if err := reconciler.SetupWithManager(b.Context(), manager); err != nil {
		b.Fatal(err)
	}
	m.stop = running(b, reached.Watcher.Run, manager.Start)
}

// running runs parts until the returned function is called.
func running(b *testing.B, parts ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, len(parts))
	for _, run := range parts {
		go func() { done <- run(ctx) }()
	}
	return func() {
		cancel()
		for range parts {
			if err := <-done; err != nil {
				b.Error(err)
			}
		}
	}
}

func (m *manifestBed) namespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	err := m.member.Create(ctx, namespace)
	return namespace.Name, err
}

// manifestWorkOf returns a ManifestWork with these objects.
func manifestWorkOf[T client.Object](name string, objects []T) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: manifestCluster, Name: name}}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
	}
	return work, nil
}

// manifestWorksOf returns ManifestWorks for ConfigMaps of a namespace, some ConfigMaps in each.
func manifestWorksOf(namespace string, objects, each int) ([]*workv1.ManifestWork, error) {
	var works []*workv1.ManifestWork
	for from := 0; from < objects; from += each {
		work, err := manifestWorkOf(fmt.Sprintf("%s-%d", namespace, from), configMaps(namespace, from, min(from+each, objects)))
		if err != nil {
			return nil, err
		}
		works = append(works, work)
	}
	return works, nil
}

// deliver creates ManifestWorks and waits until all are Applied and Available.
func (m *manifestBed) deliver(ctx context.Context, works []*workv1.ManifestWork) error {
	return untilEach(ctx, m.hub, &workv1.ManifestWorkList{}, works,
		func(ctx context.Context, work *workv1.ManifestWork) error { return m.hub.Create(ctx, work.DeepCopy()) },
		func(_ watch.Event, work *workv1.ManifestWork) bool {
			return meta.IsStatusConditionTrue(work.Status.Conditions, workv1.ConditionApplied) &&
				meta.IsStatusConditionTrue(work.Status.Conditions, workv1.ConditionAvailable)
		})
}

// withdraw deletes ManifestWorks and waits until they are gone.
func (m *manifestBed) withdraw(ctx context.Context, works []*workv1.ManifestWork) error {
	return untilEach(ctx, m.hub, &workv1.ManifestWorkList{}, works,
		func(ctx context.Context, work *workv1.ManifestWork) error { return m.hub.Delete(ctx, work.DeepCopy()) },
		func(event watch.Event, _ *workv1.ManifestWork) bool { return event.Type == watch.Deleted })
}
