// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ocmplacements_test runs the decisions of Open Cluster Management's Placements
// (pkg/placement/ocm/scheduler) on a real hub. Specs write what a registration would write for a
// cluster.
package ocmplacements_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/onehub"
)

var (
	hub       *env.Cluster
	hubClient client.Client
	gateway   *expect.Running
	// written counts the gateway's writes of decisions and Placement statuses. lastly keeps the
	// last of these for failure messages.
	written atomic.Int64
	lastly  recent
)

func TestPlacements(t *testing.T) {
	onehub.Run(t, "Placements of Open Cluster Management", "ocmplacements")
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return []*env.Cluster{hub} })

var _ = BeforeSuite(func(ctx SpecContext) {
	hub = onehub.Start(ctx)
	hubClient = expect.Client(hub.Config(), kinds())
	serve(hub, append(crds.Placements(), clusterKinds()...)...)
	gateway = start()
	DeferCleanup(func() { gateway.Stop() })
})

// clusterKinds are the kinds that registration installs.
func clusterKinds() []string {
	const group = ".cluster.open-cluster-management.io"
	return []string{"managedclusters" + group, "managedclustersets" + group, "managedclustersetbindings" + group}
}

// serve installs CRDs on a hub.
func serve(at *env.Cluster, names ...string) {
	GinkgoHelper()
	wanted, err := crds.Named(names...)
	Expect(wanted).To(HaveLen(len(names)))
	onehub.Serve(at, wanted, err)
}

func kinds() *runtime.Scheme {
	return build.Scheme(scheme.AddToScheme, apiextensionsv1.AddToScheme,
		clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme, workv1.AddToScheme)
}

// start runs the part of a gateway that this suite tests.
func start() *expect.Running {
	GinkgoHelper()
	skip := true
	return expect.Started(func(context.Context) (func(context.Context) error, error) {
		counted := build.Unlimited(hub.Config())
		counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next} })
		mgr, err := ctrl.NewManager(counted, ctrl.Options{
			Scheme: kinds(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return nil, err
		}
		return mgr.Start, placement.SetupDecisions(mgr, clock.RealClock{}, 8, nil)
	})
}

type counting struct{ http.RoundTripper }

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/placement") {
		written.Add(1)
		lastly.add(r)
	}
	return c.RoundTripper.RoundTrip(r)
}

// recent are the last requests.
type recent struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (r *recent) add(request *http.Request) {
	line := fmt.Sprint(time.Now().Format(time.StampMilli), " ", request.Method, " ", request.URL.Path)
	if request.GetBody != nil {
		if body, err := request.GetBody(); err == nil {
			text, _ := io.ReadAll(body)
			line += " " + string(text)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines[max(0, len(r.lines)-49):], line)
}

// String ends with the newest request.
func (r *recent) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}
