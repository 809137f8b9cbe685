// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/charts"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/pkg/inspect/explain"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// agentPodsTimeout limits how long listing the agent's Pods may take.
const agentPodsTimeout = 5 * time.Second

type joinOptions struct {
	*session
	Context    string
	Kubeconfig string
	Values     string
	Image      string
	Print      bool
	Timeout    time.Duration
	Labels     map[string]string
	token      tokenOptions
}

func newJoinCommand(s *session) *cobra.Command {
	o := &joinOptions{session: s, token: tokenOptions{session: s, Uses: 1, Approve: true}}
	command := &cobra.Command{
		Use:   "join NAME --member-context CONTEXT",
		Short: "Join a cluster to the fleet",
		Long: `Join a cluster to the fleet: create a Cluster object and a registration token for it on
the hub, install the agent on the cluster with the built-in Helm chart, and wait until the
member has joined. While it waits, the command reports what is missing. With --print, it
prints the manifests instead of installing them; they contain the token.`,
		Example: `  kubectl fleetgate join member-3 --member-context kind-member-3
  kubectl fleetgate join member-3 --print > member-3.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&o.Context, "member-context", "", "Context of the cluster that joins.")
	flags.StringVar(&o.Kubeconfig, "member-kubeconfig", "", "Kubeconfig file of that context. If unset, the kubeconfig of the hub is used.")
	flags.StringVarP(&o.Values, "values", "f", "", "File with further values for the agent's chart.")
	flags.StringVar(&o.Image, "image", "", "Image of the agent. If unset, the chart's default is used.")
	flags.StringToStringVar(&o.Labels, "labels", nil, "Labels of the member, for example region=eu,env=lab.")
	flags.BoolVar(&o.Print, "print", false, "Print the manifests instead of installing them.")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait until the member has joined.")
	flags.StringVar(&o.token.Registration, "registration-namespace", defaultRegistrationNamespace, registrationNamespaceUsage)
	flags.DurationVar(&o.token.TTL, "ttl", time.Hour, "Lifetime of the registration token.")
	return command
}

func (o *joinOptions) run(ctx context.Context, name string) error {
	if !o.Print && o.Context == "" && o.Kubeconfig == "" {
		return fmt.Errorf("set --member-context to the context of the cluster, or print the manifests with --print")
	}
	if len(name) > clusterv1beta1.MaxMemberNameLength {
		return fmt.Errorf("member name %q is longer than %d characters", name, clusterv1beta1.MaxMemberNameLength)
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	var config *rest.Config
	if !o.Print {
		if config, err = o.memberConfig(o.Context, o.Kubeconfig); err != nil {
			return err
		}
	}
	resuming, err := o.isResumable(ctx, h, name)
	if err != nil {
		return err
	}
	if !resuming {
		objects, err := o.manifests(ctx, h, name)
		if err != nil {
			return err
		}
		if o.Print {
			return o.print(objects)
		}
		if err := o.install(ctx, config, objects); err != nil {
			return err
		}
	}
	agent := &agentPods{config: config}
	if err := o.await(ctx, o.Timeout, func(ctx context.Context) (bool, string, error) { return o.joined(ctx, h, agent, name) }); err != nil {
		return err
	}
	o.printf("member %s has joined\n", name)
	return nil
}

// memberConfig is the configuration for a cluster itself, from a context of the file or of the
// hub's kubeconfig.
func (s *session) memberConfig(name, file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cmp.Or(file, *s.flags.KubeConfig)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	return config, nil
}

// isResumable is true if an earlier join was interrupted after the agent was installed and has
// used its token, but before the member has joined. Then there is nothing to create. Any other
// member with that name is an error.
func (o *joinOptions) isResumable(ctx context.Context, h *overview.Hub, name string) (bool, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := h.Get(ctx, client.ObjectKey{Name: name}, member)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil // Permission to read members is not required.
	}
	if err != nil {
		return false, fmt.Errorf("reading MemberCluster %q: %w", name, err)
	}
	registered := h.Get(ctx, client.ObjectKey{Namespace: o.token.Registration, Name: name}, &registrationv1alpha1.Cluster{}) == nil
	if o.Print || !registered || member.IsJoined() {
		return false, fmt.Errorf("member %q already exists: choose another name, or check its state with kubectl fleetgate why member/%s", name, name)
	}
	o.note("the agent of %s is installed and has registered; waiting until it has joined\n", name)
	return true, nil
}

// manifests creates Cluster and token on the hub and renders the manifests from them.
func (o *joinOptions) manifests(ctx context.Context, h *overview.Hub, name string) ([]*unstructured.Unstructured, error) {
	o.token.For = name
	// The order matters: the namespace, the Cluster in it, then the token for that Cluster.
	if err := o.token.ensureNamespace(ctx, h); err != nil {
		return nil, err
	}
	cluster, err := o.cluster(ctx, h, name)
	if err != nil {
		return nil, err
	}
	token, text, err := o.token.make(ctx, h, "")
	if err != nil {
		return nil, err
	}
	o.note("created token %s/%s, valid for Cluster %s only\n", token.Namespace, token.Name, name)
	values := map[string]any{}
	more, err := o.moreValues()
	if err != nil {
		return nil, err
	}
	for _, source := range [][]byte{text, more} {
		if len(source) == 0 {
			continue
		}
		if err := untrusted.Unmarshal(source, untrusted.Object, &values); err != nil {
			return nil, fmt.Errorf("reading the values of the agent's chart: %w", err)
		}
	}
	values["clientID"] = cluster.Spec.ClientID
	if o.Image != "" {
		values["image"] = importer.Image(o.Image)
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("writing the values of the agent's chart: %w", err)
	}
	packed, err := charts.Agent()
	if err != nil {
		return nil, err
	}
	return importer.Manifests(ctx, &helmchart.Bundled{Engine: inProcess{}, Package: packed}, clusterv1beta1.SystemNamespace, encoded)
}

// moreValues reads the file of --values.
func (o *joinOptions) moreValues() ([]byte, error) {
	if o.Values == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.Values)
	if err != nil {
		return nil, fmt.Errorf("reading --values: %w", err)
	}
	return text, nil
}

// inProcess renders the built-in chart. It is trusted, so it needs no process of its own.
type inProcess struct{}

// Render implements helmchart.Engine.
func (inProcess) Render(_ context.Context, r *helmchart.Release) (*helmchart.Rendered, error) {
	answer := engine.Render(r)
	if answer.Problem != nil {
		return nil, fmt.Errorf("rendering the agent's chart with these values: %w", answer.Problem)
	}
	return answer, nil
}

// cluster creates the Cluster on the hub, or reads an existing one without a member.
func (o *joinOptions) cluster(ctx context.Context, h *overview.Hub, name string) (*registrationv1alpha1.Cluster, error) {
	cluster := &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.token.Registration, Name: name, Labels: o.Labels},
		Spec:       registrationv1alpha1.ClusterSpec{ClientID: name + "-" + rand.String(8)},
	}
	err := h.Create(ctx, cluster)
	if apierrors.IsAlreadyExists(err) {
		err = h.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("creating Cluster %q: %w", name, err)
	}
	return cluster, nil
}

func (o *joinOptions) print(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("writing %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		o.printf("---\n%s", text)
	}
	return nil
}

func (o *joinOptions) install(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	kinds, err := overview.Scheme()
	if err != nil {
		return err
	}
	member, err := client.New(config, client.Options{Scheme: kinds, Mapper: importer.Mapper()})
	if err != nil {
		return fmt.Errorf("connecting to the cluster at %s: %w", config.Host, err)
	}
	for _, object := range objects {
		if err := importer.Apply(ctx, member, object); err != nil {
			return fmt.Errorf("installing %s %q on the cluster at %s: %w", object.GetKind(), object.GetName(), config.Host, err)
		}
	}
	o.note("installed the agent on %s\n", config.Host)
	return nil
}

// joined reports whether a member has joined, and otherwise what it waits for.
func (o *joinOptions) joined(ctx context.Context, h *overview.Hub, pods *agentPods, name string) (bool, string, error) {
	facts, err := h.WhyMember(ctx, name)
	if err != nil {
		return false, "", err
	}
	if facts.Member != nil && facts.Member.IsJoined() {
		return true, "", nil
	}
	agent := "check the agent's log on the cluster: kubectl logs -n fleet-system -l app=fleet-agent" + pods.problem(ctx)
	for i := range facts.Registrations {
		r := &facts.Registrations[i]
		c := meta.FindStatusCondition(r.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
		if r.Namespace == o.token.Registration && facts.Cluster != nil && r.Spec.ClientID == facts.Cluster.Spec.ClientID && c != nil && !r.Status.Granted {
			return false, fmt.Sprintf("the registration of %s is not granted: %s", name, untrusted.Line(c.Message)), nil
		}
	}
	if facts.Member == nil {
		return false, fmt.Sprintf("the agent of %s has not registered: %s", name, agent), nil
	}
	problems := explain.Member(facts)
	if len(problems) == 0 {
		return false, fmt.Sprintf("member %s has not joined: %s", name, agent), nil
	}
	return false, problems[0].String(), nil
}

// agentPods reads the agent's Pods from the cluster itself.
type agentPods struct{ config *rest.Config }

// problem is why they are not ready, to be appended to a sentence; empty if they are ready or
// cannot be read.
func (a *agentPods) problem(ctx context.Context) string {
	cluster, err := kubernetes.NewForConfig(a.config)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, agentPodsTimeout)
	defer cancel()
	list, err := cluster.CoreV1().Pods(clusterv1beta1.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=fleet-agent"})
	if err != nil {
		return ""
	}
	if reason := availability.WhyNot(list.Items); reason != "" {
		return "; " + untrusted.Line(reason)
	}
	return ""
}
