// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

var installs = map[string]struct {
	chart string
	args  []string
}{
	"a gateway":                        {"gateway", []string{hubAccess}},
	"a gateway with a port for agents": {"gateway", []string{hubAccess, "--set=agents.address=hub.example.org:443"}},
	"an agent":                         {"agent", []string{"--set=token=a", "--set=apiServerURL=https://hub.example.org"}},
}

// TestNetworkPoliciesLetInWhatIsServedAndNothingElse compares the ports of the Pods with those of
// the policy, with default values.
func TestNetworkPoliciesLetInWhatIsServedAndNothingElse(t *testing.T) {
	for name, install := range installs {
		t.Run(name, func(t *testing.T) {
			deployment, policies := network(t, install.chart, install.args...)
			if len(policies) != 1 {
				t.Fatalf("%d NetworkPolicies are rendered, want one", len(policies))
			}
			policy := policies[0]
			if diff := cmp.Diff(deployment.Spec.Selector, &policy.Spec.PodSelector); diff != "" {
				t.Errorf("the policy is about other Pods (-Deployment +policy):\n%s", diff)
			}
			if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
				t.Errorf("the policy has types %v; a chart cannot know the addresses of API servers, registries and proxies", policy.Spec.PolicyTypes)
			}
			var served, letIn []string
			for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
				served = append(served, port.Name)
			}
			for _, rule := range policy.Spec.Ingress {
				if len(rule.Ports) == 0 {
					t.Error("a rule allows everything")
				}
				for _, port := range rule.Ports {
					letIn = append(letIn, port.Port.String())
					if port.Port.String() == "peers" && len(rule.From) == 0 {
						t.Error("the port for peers is open to everybody")
					}
				}
			}
			slices.Sort(served)
			slices.Sort(letIn)
			if diff := cmp.Diff(served, letIn); diff != "" {
				t.Errorf("other ports are let in than are served (-served +let in):\n%s", diff)
			}
		})
	}
}

func TestNetworkPoliciesAreSwitchedOffOrExtended(t *testing.T) {
	for name, install := range installs {
		t.Run(name, func(t *testing.T) {
			if _, policies := network(t, install.chart, append(slices.Clone(install.args), "--set=networkPolicy.enabled=false")...); len(policies) > 0 {
				t.Error("a NetworkPolicy is rendered although it is disabled")
			}
			_, policies := network(t, install.chart, append(slices.Clone(install.args),
				"--set=networkPolicy.ingress[0].ports[0].port=8093", "--set=networkPolicy.egress[0].ports[0].port=443",
				"--set=networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus")...)
			spec := policies[0].Spec
			if port := spec.Ingress[len(spec.Ingress)-1].Ports[0].Port.IntValue(); port != 8093 {
				t.Errorf("the last rule lets port %d in, want the further one", port)
			}
			if len(spec.Egress) != 1 || !slices.Contains(spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
				t.Errorf("the rule about what may be reached is not there: %v, %v", spec.PolicyTypes, spec.Egress)
			}
			if from := spec.Ingress[len(spec.Ingress)-2].From; len(from) != 1 || from[0].PodSelector.MatchLabels["app"] != "prometheus" {
				t.Errorf("metrics are read by %v, want one peer", from)
			}
		})
	}
}

// network is a rendered Deployment with its NetworkPolicies.
func network(t *testing.T, chart string, args ...string) (deployment appsv1.Deployment, policies []networkingv1.NetworkPolicy) {
	t.Helper()
	rendered, err := render(t, chart, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(rendered, "\n---\n") {
		switch {
		case strings.Contains(document, "\nkind: Deployment\n"):
			err = yaml.UnmarshalStrict([]byte(document), &deployment)
		case strings.Contains(document, "\nkind: NetworkPolicy\n"):
			policies = append(policies, networkingv1.NetworkPolicy{})
			err = yaml.UnmarshalStrict([]byte(document), &policies[len(policies)-1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return deployment, policies
}

// TestServicesHaveTheFamiliesThatAreAskedFor covers dual-stack hubs. A hub with one address family
// needs no value.
func TestServicesHaveTheFamiliesThatAreAskedFor(t *testing.T) {
	services := func(args ...string) (all []corev1.Service) {
		rendered, err := render(t, "gateway", append([]string{hubAccess, "--set=agents.address=[2001:db8::1]:8091", "--set=agents.service.type=LoadBalancer"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(rendered, "\n---\n") {
			var service corev1.Service
			if !strings.Contains(document, "kind: Service\n") {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(document), &service); err != nil {
				t.Fatal(err)
			}
			all = append(all, service)
		}
		if len(all) != 2 {
			t.Fatalf("the chart has %d Services", len(all))
		}
		return all
	}
	for _, service := range services() {
		if service.Spec.IPFamilyPolicy != nil || service.Spec.IPFamilies != nil {
			t.Errorf("Service %s asks for families by itself", service.Name)
		}
	}
	policy := corev1.IPFamilyPolicyPreferDualStack
	want := corev1.ServiceSpec{IPFamilyPolicy: &policy, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}}
	for _, service := range services("--set=services.ipFamilyPolicy=PreferDualStack", "--set=services.ipFamilies={IPv6,IPv4}") {
		got := corev1.ServiceSpec{IPFamilyPolicy: service.Spec.IPFamilyPolicy, IPFamilies: service.Spec.IPFamilies}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Service %s: %s", service.Name, diff)
		}
	}
	if _, err := render(t, "gateway", hubAccess, "--set=services.ipFamilyPolicy=Both"); err == nil {
		t.Error("an unknown ipFamilyPolicy is accepted")
	}
}
