// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// state is the result of the main job without what differs between runs: random names, versions and
// times.
type state struct {
	// Members, Placements and Works hold "type=status reason" of each condition.
	Members, Placements, PerCluster, Works map[string][]string
	// Bindings are "placement on cluster: state".
	Bindings []string
	// OnMembers are the applied objects with their relevant fields.
	OnMembers map[string][]string
}

type condition struct{ Type, Status, Reason string }

func (c condition) String() string { return fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason) }

func texts(conditions []condition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, c.String())
	}
	slices.Sort(all)
	return all
}

// Settling returns the conditions of placements and Works that are not True, with their object.
// There are none once everything is settled.
func (s state) Settling() []string {
	var found []string
	for _, kind := range []map[string][]string{s.Placements, s.PerCluster, s.Works} {
		for name, conditions := range kind {
			for _, c := range conditions {
				if strings.Contains(c, "=False ") || strings.Contains(c, "=Unknown ") {
					found = append(found, name+": "+c)
				}
			}
		}
	}
	return found
}

// placements is the path of placements and what is made of them.
const placements = "/apis/placement.kubernetes-fleet.io/v1beta1"

// look reads the state.
func (l *launched) look(ctx context.Context) (state, error) {
	s := state{
		Members: map[string][]string{}, Placements: map[string][]string{}, PerCluster: map[string][]string{},
		Works: map[string][]string{}, OnMembers: map[string][]string{},
	}
	for _, read := range []func(context.Context, *state) error{l.lookAtMembers, l.lookAtPlacements, l.lookAtWorks} {
		if err := read(ctx, &s); err != nil {
			return s, err
		}
	}
	for _, member := range []string{"member-1", "member-2"} {
		if err := l.lookThrough(ctx, member, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (l *launched) lookAtMembers(ctx context.Context, s *state) error {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions  []condition
				AgentStatus []struct{ Conditions []condition }
			}
		}
	}
	if err := ask(ctx, l.fleet.HubKubeconfig(), &list, "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters"); err != nil {
		return err
	}
	for _, item := range list.Items {
		s.Members[item.Metadata.Name] = texts(item.Status.Conditions)
		for _, agent := range item.Status.AgentStatus {
			s.Members[item.Metadata.Name+"'s agent"] = texts(agent.Conditions)
		}
	}
	return nil
}

func (l *launched) lookAtPlacements(ctx context.Context, s *state) error {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions        []condition
				PlacementStatuses []struct {
					ClusterName string
					Conditions  []condition
				}
				SelectedResources []struct{ Kind, Namespace, Name string }
			}
		}
	}
	if err := ask(ctx, l.fleet.HubKubeconfig(), &list, placements+"/clusterresourceplacements"); err != nil {
		return err
	}
	for _, item := range list.Items {
		name := item.Metadata.Name
		s.Placements[name] = texts(item.Status.Conditions)
		for _, resource := range item.Status.SelectedResources {
			s.Placements[name] = append(s.Placements[name], fmt.Sprintf("%s %s/%s", resource.Kind, resource.Namespace, resource.Name))
		}
		for _, cluster := range item.Status.PlacementStatuses {
			s.PerCluster[name+" on "+cluster.ClusterName] = texts(cluster.Conditions)
		}
	}
	return nil
}

func (l *launched) lookAtWorks(ctx context.Context, s *state) error {
	var works struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
			Spec     struct {
				Workload struct{ Manifests []json.RawMessage }
			}
			Status struct{ Conditions []condition }
		}
	}
	if err := ask(ctx, l.fleet.HubKubeconfig(), &works, placements+"/works"); err != nil {
		return err
	}
	for _, item := range works.Items {
		s.Works[item.Metadata.Namespace+"/"+item.Metadata.Name] = append(texts(item.Status.Conditions), fmt.Sprintf("%d manifests", len(item.Spec.Workload.Manifests)))
	}
	var bindings struct {
		Items []struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ TargetCluster, State string }
		}
	}
	if err := ask(ctx, l.fleet.HubKubeconfig(), &bindings, placements+"/clusterresourcebindings"); err != nil {
		return err
	}
	for _, item := range bindings.Items {
		s.Bindings = append(s.Bindings, fmt.Sprintf("%s on %s: %s", item.Metadata.Labels["kubernetes-fleet.io/parent-CRP"], item.Spec.TargetCluster, item.Spec.State))
	}
	slices.Sort(s.Bindings)
	return nil
}

// lookThrough reads the placed objects of a member through the hub.
func (l *launched) lookThrough(ctx context.Context, member string, s *state) error {
	kubeconfig := l.fleet.MemberKubeconfig(member)
	for _, path := range []string{"/apis/apps/v1/namespaces/shop/deployments", "/api/v1/namespaces/shop/services", "/api/v1/namespaces/shop/configmaps"} {
		var list struct {
			Items []struct {
				Metadata struct{ Namespace, Name string }
				Data     map[string]string
				Status   struct{ ReadyReplicas int }
			}
		}
		if err := ask(ctx, kubeconfig, &list, path); err != nil {
			return err
		}
		for _, item := range list.Items {
			if item.Metadata.Name == "kube-root-ca.crt" {
				continue // The member's own object.
			}
			s.OnMembers[member] = append(s.OnMembers[member], fmt.Sprintf("%s %s/%s %v %d ready",
				filepath.Base(path), item.Metadata.Namespace, item.Metadata.Name, item.Data, item.Status.ReadyReplicas))
		}
	}
	slices.Sort(s.OnMembers[member])
	var binding struct{ Metadata struct{ Name string } }
	err := ask(ctx, kubeconfig, &binding, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/fleetgate-admins")
	s.OnMembers[member] = append(s.OnMembers[member], binding.Metadata.Name)
	return err
}

// ask reads from an API server. It does not run kubectl, which is for what users do: a state is read
// until it has settled, and eight commands for each took most of the CPU time.
func ask(ctx context.Context, kubeconfig string, into any, path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = 20 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	out, err := client.RESTClient().Get().AbsPath(path).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// read reads with kubectl.
func (l *launched) read(ctx context.Context, kubeconfig string, into any, args ...string) error {
	out, err := l.fleet.Kubectl(ctx, kubeconfig, "", append([]string{"get", "--output=json", "--request-timeout=20s"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}
