from canaryproof.verify.audit.watch.adapter_check import AdapterTraining as AdapterTraining
from canaryproof.verify.audit.watch.adapter_check import check_adapter as check_adapter
