// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

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
	"fleetgate.io/fleetgate/pkg/cluster/importer"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/helmchart/engine"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
	"fleetgate.io/fleetgate/pkg/plugin/why"
	"fleetgate.io/fleetgate/pkg/untrusted"
	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// agentAnswers is how long the cluster has to say how the agent's Pods are.
const agentAnswers = 5 * time.Second

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
		Short: "Make a cluster a member: token, agent, and wait until it has joined",
		Long: `Join makes a Cluster and a token on the hub that is good for this one cluster, installs
the agent on the cluster that a context of your kubeconfig leads to, with the chart that
is part of this program, and waits until it has joined. It says at each moment what is
in the way. With --print nothing is installed: what would be is printed, with the token
in it.`,
		Example: `  kubectl fleetgate join member-3 --member-context kind-member-3
  kubectl fleetgate join member-3 --print > member-3.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&o.Context, "member-context", "", "The context that leads to the cluster.")
	flags.StringVar(&o.Kubeconfig, "member-kubeconfig", "", "The file that has it. Empty: that of the hub's context.")
	flags.StringVarP(&o.Values, "values", "f", "", "File with more values of the agent's chart.")
	flags.StringVar(&o.Image, "image", "", "The agent's image. Empty: the chart's.")
	flags.StringToStringVar(&o.Labels, "labels", nil, "Labels of the member, such as region=eu,env=lab.")
	flags.BoolVar(&o.Print, "print", false, "Print what would be installed, and return.")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait until it has joined.")
	flags.StringVar(&o.token.Registration, "in", defaultRegistrationNamespace, "Namespace on the hub where clusters register. It is made if it is not there.")
	flags.DurationVar(&o.token.TTL, "ttl", time.Hour, "How long the token is good for.")
	return command
}

func (o *joinOptions) run(ctx context.Context, name string) error {
	if !o.Print && o.Context == "" && o.Kubeconfig == "" {
		return fmt.Errorf("say with --member-context which context leads to the cluster, or print what to install with --print")
	}
	if len(name) > clusterv1beta1.MaxMemberNameLength {
		return fmt.Errorf("%q cannot be a member: its name has more than %d characters", name, clusterv1beta1.MaxMemberNameLength)
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
	underWay, err := o.underWay(ctx, h, name)
	if err != nil {
		return err
	}
	if !underWay {
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
	o.say("member %s has joined\n", name)
	return nil
}

// memberConfig leads to a cluster itself: by a context, of a file or of the hub's.
func (s *session) memberConfig(name, file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cmp.Or(file, *s.flags.KubeConfig)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	return config, nil
}

// underWay is true if an earlier join has come as far as a member that has not joined yet: its
// agent is installed, and has used its token. There is nothing to make again then. Any other
// member of that name is an error.
func (o *joinOptions) underWay(ctx context.Context, h *hub.Hub, name string) (bool, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := h.Get(ctx, client.ObjectKey{Name: name}, member)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil // Who may not read members may still make one join.
	}
	if err != nil {
		return false, fmt.Errorf("reading MemberCluster %q: %w", name, err)
	}
	registered := h.Get(ctx, client.ObjectKey{Namespace: o.token.Registration, Name: name}, &registrationv1alpha1.Cluster{}) == nil
	if o.Print || !registered || member.IsJoined() {
		return false, fmt.Errorf("member %q is there already: choose another name, or see how it is with kubectl fleetgate why member/%s", name, name)
	}
	o.note("the agent of %s is installed and has registered: going on to wait\n", name)
	return true, nil
}

// manifests makes Cluster and token on the hub, and of these what is installed.
func (o *joinOptions) manifests(ctx context.Context, h *hub.Hub, name string) ([]*unstructured.Unstructured, error) {
	o.token.For = name
	// The namespace has to be there before the Cluster, which has to be there before the token.
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
	o.note("token %s/%s is made, for Cluster %s alone\n", token.Namespace, token.Name, name)
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

// moreValues are those of --values.
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

// inProcess renders the chart that is part of this program: nobody else wrote it.
type inProcess struct{}

// Render implements helmchart.Engine.
func (inProcess) Render(_ context.Context, r *helmchart.Release) (*helmchart.Answer, error) {
	answer := engine.Render(r)
	if answer.Problem != nil {
		return nil, fmt.Errorf("the values do not fit the agent's chart: %w", answer.Problem)
	}
	return answer, nil
}

// cluster makes the Cluster on the hub, or finds one that nobody has come for.
func (o *joinOptions) cluster(ctx context.Context, h *hub.Hub, name string) (*registrationv1alpha1.Cluster, error) {
	cluster := &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.token.Registration, Name: name, Labels: o.Labels},
		Spec:       registrationv1alpha1.ClusterSpec{ClientID: name + "-" + rand.String(8)},
	}
	err := h.Create(ctx, cluster)
	if apierrors.IsAlreadyExists(err) {
		err = h.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("making Cluster %q: %w", name, err)
	}
	return cluster, nil
}

func (o *joinOptions) print(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("writing %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		o.say("---\n%s", text)
	}
	return nil
}

func (o *joinOptions) install(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	kinds, err := hub.Scheme()
	if err != nil {
		return err
	}
	member, err := client.New(config, client.Options{Scheme: kinds, Mapper: importer.Mapper()})
	if err != nil {
		return fmt.Errorf("reaching the cluster at %s: %w", config.Host, err)
	}
	for _, object := range objects {
		if err := importer.Apply(ctx, member, object); err != nil {
			return fmt.Errorf("installing %s %q on the cluster at %s: %w", object.GetKind(), object.GetName(), config.Host, err)
		}
	}
	o.note("the agent is installed on %s\n", config.Host)
	return nil
}

// joined says whether a member has joined, and what is in the way.
func (o *joinOptions) joined(ctx context.Context, h *hub.Hub, pods *agentPods, name string) (bool, string, error) {
	facts, err := h.WhyMember(ctx, name)
	if err != nil {
		return false, "", err
	}
	if facts.Member != nil && facts.Member.IsJoined() {
		return true, "", nil
	}
	agent := "see what its agent says: kubectl logs -n fleet-system -l app=fleet-agent, on the cluster itself" + pods.whyNot(ctx)
	for i := range facts.Registrations {
		r := &facts.Registrations[i]
		c := meta.FindStatusCondition(r.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
		if r.Namespace == o.token.Registration && facts.Cluster != nil && r.Spec.ClientID == facts.Cluster.Spec.ClientID && c != nil && !r.Status.Granted {
			return false, fmt.Sprintf("the registration of %s is not granted: %s", name, why.Plain(c.Message)), nil
		}
	}
	if facts.Member == nil {
		return false, fmt.Sprintf("the agent of %s has not registered: %s", name, agent), nil
	}
	answers := why.Member(facts)
	if len(answers) == 0 {
		return false, fmt.Sprintf("member %s has not joined: %s", name, agent), nil
	}
	return false, answers[0].String(), nil
}

// agentPods looks at the agent's Pods on the cluster itself.
type agentPods struct{ config *rest.Config }

// whyNot is what holds them up, to be appended to a sentence; empty if nothing does, or if the
// cluster does not say.
func (a *agentPods) whyNot(ctx context.Context) string {
	cluster, err := kubernetes.NewForConfig(a.config)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, agentAnswers)
	defer cancel()
	list, err := cluster.CoreV1().Pods(clusterv1beta1.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=fleet-agent"})
	if err != nil {
		return ""
	}
	if reason := availability.WhyNot(list.Items); reason != "" {
		return "; " + why.Plain(reason)
	}
	return ""
}
