// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	pluginhub "fleetgate.io/fleetgate/pkg/plugin/hub"
	"fleetgate.io/fleetgate/test/onehub"
)

const (
	// Of the placements some are not well on any member; each of these is on all of them.
	manyMembers, manyPlacements, manyUnwell = 1000, 100, 5
	// mostHeap is what a page may have of JavaScript, in bytes.
	mostHeap = 50 << 20
)

// gateways is the gateway's own kind, as a hub without a gateway has to have it.
func gateways() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clustergateways.cluster.core.oam.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gatewayv1alpha1.GroupVersion.Group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "ClusterGateway", Plural: "clustergateways"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gatewayv1alpha1.GroupVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
}

func conditions(prefix string, types ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range types {
		all = append(all, metav1.Condition{Type: prefix + kind, Status: metav1.ConditionTrue, Reason: "AsItShouldBe", Message: strings.Repeat("all is well ", 8), LastTransitionTime: metav1.Now()})
	}
	return all
}

// refusals are the conditions of a member on which something is not applied.
func refusals() []metav1.Condition {
	return append(conditions("", "RolloutStarted", "Overridden", "WorkSynchronized"), metav1.Condition{
		Type: "Applied", Status: metav1.ConditionFalse, Reason: "NotAllWorkHaveBeenApplied", Message: strings.Repeat("exceeded quota ", 10), LastTransitionTime: metav1.Now(),
	})
}

func manyMember(i int) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("member-%d", i), Labels: map[string]string{"region": []string{"asia", "eu", "us"}[i%3], "env": "production"}}}
	m.Spec.Identity.Kind, m.Spec.Identity.APIGroup, m.Spec.Identity.Name = "User", "rbac.authorization.k8s.io", "someone"
	m.Status.Conditions = conditions("", clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined)
	if i%40 == 7 {
		m.Status.Conditions[1].Status, m.Status.Conditions[1].Message = metav1.ConditionUnknown, "no heartbeat since noon"
	}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: conditions("", "Joined", "Healthy", "TunnelConnected"), LastReceivedHeartbeat: metav1.Now()}}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.PropertyNodeCount:         {Value: fmt.Sprint(1 << (i % 8)), ObservationTime: metav1.Now()},
		clusterv1beta1.PropertyAgentVersion:      {Value: "v0.1.0", ObservationTime: metav1.Now()},
		clusterv1beta1.PropertyKubernetesVersion: {Value: "v1.36.3", ObservationTime: metav1.Now()},
	}
	return m
}

func manyPlacement(i int) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("placement-%d", i)}}
	p.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: p.Name}}
	p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll}
	p.Status.Conditions = conditions("ClusterResourcePlacement", "Scheduled", "Applied", "Available")
	if i >= manyUnwell {
		return p
	}
	p.Status.Conditions = p.Status.Conditions[:1]
	for j := range manyMembers {
		p.Status.PlacementStatuses = append(p.Status.PlacementStatuses, placementv1beta1.PerClusterPlacementStatus{ClusterName: fmt.Sprintf("member-%d", j), Conditions: refusals()[3:]})
	}
	return p
}

func manyBinding(placement string, i int) *placementv1beta1.ClusterResourceBinding {
	name := fmt.Sprintf("member-%d", i)
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: placement + "-" + name, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement}}}
	b.Spec.TargetCluster, b.Spec.State, b.Spec.ResourceSnapshotName, b.Spec.SchedulingPolicySnapshotName = name, placementv1beta1.BindingBound, placement+"-0-snapshot", placement+"-0"
	b.Status.Conditions = refusals()
	return b
}

// write makes objects with their status, 32 at a time.
func write(ctx context.Context, config *rest.Config, all []client.Object) {
	GinkgoHelper()
	scheme, err := pluginhub.Scheme()
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	var c client.Client
	// Kinds that were just defined are served by and by.
	Eventually(func() error {
		if c, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
			return err
		}
		for _, list := range []client.ObjectList{
			&clusterv1beta1.MemberClusterList{}, &placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ClusterResourceBindingList{}, &gatewayv1alpha1.ClusterGatewayList{},
		} {
			if err := c.List(ctx, list); err != nil {
				return err
			}
		}
		return nil
	}).Should(Succeed())
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for _, object := range all {
		group.Go(func() error {
			with := object.DeepCopyObject().(client.Object)
			if err := c.Create(ctx, object); err != nil {
				return err
			}
			with.SetResourceVersion(object.GetResourceVersion())
			if _, whole := with.(*gatewayv1alpha1.ClusterGateway); whole {
				return nil // It has its status from the beginning.
			}
			return c.Status().Update(ctx, with)
		})
	}
	Expect(group.Wait()).To(Succeed())
}

var _ = Describe("A thousand members and a hundred placements", Ordered, func() {
	var kubeconfig string

	BeforeAll(func(ctx SpecContext) {
		prepareBrowser(ctx)
		many := onehub.Start(ctx)
		kinds, err := crds.ForHub(clusterv1beta1.GroupVersion.Group, placementv1beta1.GroupVersion.Group)
		onehub.Serve(many, append(kinds, gateways()), err)
		var all []client.Object
		for i := range manyMembers {
			all = append(all, manyMember(i), manyBinding("placement-0", i),
				&gatewayv1alpha1.ClusterGateway{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("member-%d", i)}, Status: gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}})
		}
		for i := range manyPlacements {
			all = append(all, manyPlacement(i))
		}
		write(ctx, many.Config(), all)
		kubeconfig, err = many.Kubeconfig("administrator", "system:masters")
		Expect(err).NotTo(HaveOccurred())
	})

	It("are told by members, why and tree", func(ctx SpecContext) {
		home, err := filepath.Abs(filepath.Join("..", "..", "..", ".fleetgate", "bin", "kubectl-fleetgate"))
		Expect(err).NotTo(HaveOccurred())
		cache := GinkgoT().TempDir()
		for _, call := range []struct {
			args []string
			want string
		}{
			{[]string{"members"}, "member-999"}, {[]string{"why", "placement-0"}, " more): not applied: exceeded quota"}, {[]string{"tree", "placement-0", "--unwell"}, "member member-999: not applied"},
		} {
			// The first asks the hub for its kinds, as kubectl's first does.
			for _, which := range []string{"first", "next"} {
				command := exec.CommandContext(ctx, home, append([]string{"--kubeconfig=" + kubeconfig, "--cache-dir=" + cache}, call.args...)...)
				command.Env = append(os.Environ(), "HOME="+cache)
				started := time.Now()
				out, err := command.CombinedOutput()
				took := time.Since(started)
				if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 2 {
					err = nil // It has found what is wrong.
				}
				Expect(err).NotTo(HaveOccurred(), string(out))
				Expect(string(out)).To(ContainSubstring(call.want))
				AddReportEntry(fmt.Sprintf("%s, %s", call.args[0], which), took.Round(time.Millisecond).String())
			}
		}
	})

	It("fit into a page", func() {
		b := openConsole(kubeconfig)
		call(b, performance.Enable, performance.EnableParams{})
		for name, path := range map[string]string{"fleet": "/?by=region", "placements": "/placements", "placement": "/placement?name=placement-0", "wrong": "/wrong"} {
			b.show(path)
			b.picture("thousand-" + name)
			took := b.text("String(Math.round(performance.getEntriesByType('navigation')[0].domComplete))")
			answered := b.text("String(Math.round(performance.getEntriesByType('navigation')[0].responseStart))")
			call(b, heapprofiler.CollectGarbage, cdp.Empty{})
			heap := 0.0
			for _, metric := range call(b, performance.GetMetrics, cdp.Empty{}).Metrics {
				if metric.Name == "JSHeapUsedSize" {
					heap = metric.Value
				}
			}
			Expect(heap).To(And(BeNumerically(">", 0), BeNumerically("<", mostHeap)), path)
			AddReportEntry("page "+name, fmt.Sprintf("%s ms until it has loaded, %s ms of it until the server answers; %.1f MB of heap", took, answered, heap/1e6))
		}
		b.show("/?by=region")
		Expect(b.text("String(document.querySelectorAll('.tiles a').length)")).To(Equal("1000"))
		Expect(b.text("String(document.querySelector('.tiles').getBoundingClientRect().bottom <= 900)")).To(Equal("true"), "on one screen")
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			b.picture("thousand-" + scheme)
		}
		Expect(b.told()).To(BeEmpty())
	})
})
