// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// tokenTimeout is how long the gateway has for the values of a token.
const tokenTimeout = 30 * time.Second

// defaultRegistrationNamespace is where clusters register if nobody says otherwise.
const defaultRegistrationNamespace = "clusters"

type tokenOptions struct {
	*session
	Registration string
	TTL          time.Duration
	Uses         int
	For          string
	Approve      bool
	Values       bool
}

func newTokenCommand(s *session) *cobra.Command {
	o := &tokenOptions{session: s}
	command := &cobra.Command{
		Use:   "token [NAME]",
		Short: "Make a registration token, and say how it is used",
		Long: `Token makes a ClusterRegistrationToken and prints the command that registers a cluster
with it. Without a name one is made up. By default it is good for one cluster and for a
day. With --values it prints the values of the agent's chart, which hold the token.`,
		Example: `  kubectl fleetgate token
  kubectl fleetgate token edge --uses=10 --ttl=1h --values`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return o.run(command.Context(), name)
		},
	}
	command.Flags().StringVar(&o.Registration, "in", defaultRegistrationNamespace, "Namespace on the hub where clusters register. It is made if it is not there.")
	command.Flags().DurationVar(&o.TTL, "ttl", 24*time.Hour, "How long it is good for.")
	command.Flags().IntVar(&o.Uses, "uses", 1, "How many clusters it lets in.")
	command.Flags().StringVar(&o.For, "for", "", "Let in the Cluster of this name only.")
	command.Flags().BoolVar(&o.Approve, "approve", true, "Let its clusters have placements at once. Without, each waits for approve.")
	command.Flags().BoolVar(&o.Values, "values", false, "Print the values of the agent's chart instead of the command.")
	return command
}

func (o *tokenOptions) run(ctx context.Context, name string) error {
	if o.TTL <= 0 || o.Uses <= 0 || o.Uses > registrationv1alpha1.MaxUses {
		return fmt.Errorf("--ttl has to be positive, and --uses from 1 to %d", registrationv1alpha1.MaxUses)
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	token, values, err := o.make(ctx, h, name)
	if err != nil {
		return err
	}
	if o.Values {
		_, err := o.Out.Write(values)
		return err
	}
	o.say(`token %[1]s made in namespace %[2]s. For a cluster of whose kubeconfig you have a context:

  kubectl fleetgate join NAME --member-context CONTEXT

or, where Helm runs for that cluster:

  kubectl --namespace=%[2]s get secret %[1]s -o 'jsonpath={.data.values}' | base64 --decode > values.yaml
  helm install fleet-agent charts/agent --namespace fleet-system --create-namespace --wait --values values.yaml
`, token.Name, token.Namespace)
	return nil
}

// make makes a token and waits for its values.
func (o *tokenOptions) make(ctx context.Context, h *hub.Hub, name string) (*registrationv1alpha1.ClusterRegistrationToken, []byte, error) {
	if err := o.ensureNamespace(ctx, h); err != nil {
		return nil, nil, err
	}
	approval := registrationv1alpha1.ApprovalManual
	if o.Approve {
		approval = registrationv1alpha1.ApprovalAuto
	}
	token := &registrationv1alpha1.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Registration, Name: name,
			Annotations: map[string]string{
				registrationv1alpha1.AnnotationApproval: approval, registrationv1alpha1.AnnotationUses: strconv.Itoa(o.Uses),
			},
		},
		Spec: registrationv1alpha1.ClusterRegistrationTokenSpec{TTL: &metav1.Duration{Duration: o.TTL}},
	}
	if name == "" {
		token.GenerateName = "token-"
	}
	if o.For != "" {
		token.Annotations[registrationv1alpha1.AnnotationForCluster] = o.For
	}
	if err := h.Create(ctx, token); err != nil {
		return nil, nil, fmt.Errorf("making a token: %w", err)
	}
	values, err := o.valuesOf(ctx, h, token)
	return token, values, err
}

// ensureNamespace makes the namespace where clusters register. Who may not make namespaces
// may still make tokens in one that is there.
func (o *tokenOptions) ensureNamespace(ctx context.Context, h *hub.Hub) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Registration}}
	if err := h.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("making namespace %q: %w", o.Registration, err)
	}
	return nil
}

func (o *tokenOptions) valuesOf(ctx context.Context, h *hub.Hub, token *registrationv1alpha1.ClusterRegistrationToken) (values []byte, err error) {
	key := client.ObjectKeyFromObject(token)
	err = o.await(ctx, tokenTimeout, func(ctx context.Context) (bool, string, error) {
		if err := h.Get(ctx, key, token); err != nil {
			return false, "", fmt.Errorf("reading token %q: %w", key.Name, err)
		}
		ready := meta.FindStatusCondition(token.Status.Conditions, registrationv1alpha1.TokenConditionReady)
		switch {
		case ready == nil:
			return false, fmt.Sprintf("no gateway has looked at token %q: is one running?", key.Name), nil
		case ready.Status != metav1.ConditionTrue && ready.Reason != "":
			return false, fmt.Sprintf("token %q is not ready: %s", key.Name, ready.Message), nil
		}
		secret := &corev1.Secret{}
		if err := h.Get(ctx, key, secret); err != nil {
			return false, "the Secret with its values is on its way", client.IgnoreNotFound(err)
		}
		values = secret.Data[registrationv1alpha1.RegistrationValuesKey]
		return len(values) > 0, "the Secret with its values is on its way", nil
	})
	return values, err
}
